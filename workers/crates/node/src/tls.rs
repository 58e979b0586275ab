//! TLS between sites and hub. The hub is its own authority; the enrolment token carries the authority's fingerprint, so a site needs
//! no set-up to trust it.
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use ring::digest::{SHA256, digest};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};

/// The name in every hub's certificate: sites check the authority, not the address they reached it by.
pub const HUB_NAME: &str = "hub.downburst.internal";

/// The hub's side, and what sites must know of it.
pub(crate) struct HubIdentity {
    pub(crate) config: Arc<ServerConfig>,
    /// SHA-256 of the authority's certificate, in hex.
    pub(crate) ca_sha256: String,
}

/// Reads the hub's authority from `dir`, or makes one there, and issues a certificate for this start.
pub(crate) fn hub_identity(dir: &Path) -> Result<HubIdentity, String> {
    let sentence = |what: &str, error: &dyn std::fmt::Display| {
        format!("the hub's keys in {}: {what}: {error}", dir.display())
    };
    fs::create_dir_all(dir).map_err(|error| sentence("the directory can't be made", &error))?;
    let (ca_der, ca_key) = authority(dir).map_err(|error| sentence("the authority can't be used", &error))?;
    let issuer = Issuer::new(authority_params(), ca_key);
    let key = KeyPair::generate().map_err(|error| sentence("no key could be made", &error))?;
    let params = CertificateParams::new(vec![HUB_NAME.to_owned()])
        .map_err(|error| sentence("no certificate", &error))?;
    let certificate = params.signed_by(&key, &issuer).map_err(|error| sentence("no certificate", &error))?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| sentence("TLS 1.3 is not available", &error))?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone(), ca_der.clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .map_err(|error| sentence("the certificate can't be used", &error))?;
    Ok(HubIdentity { config: Arc::new(config), ca_sha256: sha256_hex(&ca_der) })
}

/// The site's side: trusts the one authority with this fingerprint.
pub fn site_config(ca_sha256: &str) -> Result<Arc<ClientConfig>, rustls::Error> {
    let verifier = Arc::new(FingerprintVerifier { ca_sha256: ca_sha256.to_owned(), provider: provider() });
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// SHA-256 in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file that only its owner may read, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = path.with_extension("tmp");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(aside, path)?;
    // The name as well has to survive a power cut: others act on what lies here.
    path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}

fn authority(dir: &Path) -> Result<(CertificateDer<'static>, KeyPair), String> {
    let (certificate_path, key_path) = (dir.join("ca.pem"), dir.join("ca.key"));
    if !certificate_path.exists() {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = authority_params().self_signed(&key).map_err(|error| error.to_string())?;
        write_private(&key_path, key.serialize_pem().as_bytes()).map_err(|error| error.to_string())?;
        write_private(&certificate_path, certificate.pem().as_bytes()).map_err(|error| error.to_string())?;
    }
    let certificate = CertificateDer::from_pem_file(&certificate_path).map_err(|error| error.to_string())?;
    let key = fs::read_to_string(&key_path).map_err(|error| error.to_string())?;
    Ok((certificate, KeyPair::from_pem(&key).map_err(|error| error.to_string())?))
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Downburst hub authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Accepts a chain that ends in the authority with the known fingerprint.
#[derive(Debug)]
struct FingerprintVerifier {
    ca_sha256: String,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for FingerprintVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let authority = intermediates
            .iter()
            .find(|certificate| sha256_hex(certificate) == self.ca_sha256)
            .ok_or(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("sessions speak TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_survives_a_restart_and_its_key_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let first = hub_identity(dir.path()).unwrap();
        let second = hub_identity(dir.path()).unwrap();
        assert_eq!(first.ca_sha256, second.ca_sha256);
        assert_eq!(first.ca_sha256.len(), 64);
        let mode = fs::metadata(dir.path().join("ca.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
