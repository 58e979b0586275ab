//! The settings of a connection, read anew for each attempt: a password or a certificate may have been replaced.
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use downburst_wis2::Broker;
use rumqttc::v5::MqttOptions;
use rumqttc::{TlsConfiguration, Transport};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

pub(crate) fn options(broker: &Broker, client_id: &str) -> Result<MqttOptions, String> {
    let host = if broker.host.contains(':') { format!("[{}]", broker.host) } else { broker.host.clone() };
    let mut options = MqttOptions::new(client_id, host, broker.port);
    options.set_keep_alive(KEEP_ALIVE).set_clean_start(true).set_connection_timeout(CONNECTION_S);
    if let Some(user) = &broker.user {
        let password = broker.password_file.as_deref().map(password).transpose()?;
        options.set_credentials(user, password.unwrap_or_default());
    }
    if broker.is_encrypted {
        let encryption = Arc::new(encryption(broker.ca_file.as_deref())?);
        options.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(encryption)));
    }
    Ok(options)
}

/// The first line of a file.
fn password(path: &Path) -> Result<String, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("the password in {} can't be read: {error}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
    file.take(LONGEST_PASSWORD).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn encryption(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let added = match ca_file {
        Some(path) => roots.add_parsable_certificates(certificates(path)?).0,
        None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs).0,
    };
    if added == 0 {
        return Err(match ca_file {
            Some(path) => format!("{} has no certificate in PEM", path.display()),
            None => {
                "this system has no certificates of authorities; install them, or give ca-file".to_owned()
            }
        });
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: rustls::pki_types::pem::Error| {
        format!("the certificates in {} can't be read: {error}", path.display())
    };
    CertificateDer::pem_file_iter(path).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

const KEEP_ALIVE: Duration = Duration::from_secs(30);
const CONNECTION_S: u64 = 10;
const LONGEST_PASSWORD: u64 = 1_024;
