//! TLS between sites and hub. The hub is its own authority; the enrolment token carries the authority's
//! fingerprint, so a site needs no set-up to trust it.
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use downburst_log::disk::{self, File};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use ring::digest::{SHA256, digest};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};

/// The name in every hub's certificate: sites check the authority, not the address under which they reached it.
pub const HUB_NAME: &str = "hub.downburst.internal";

/// The hub's side, and the fingerprint for sites.
pub(crate) struct HubIdentity {
    pub(crate) config: Arc<ServerConfig>,
    /// SHA-256 of the authority's certificate, in hex.
    pub(crate) ca_sha256: String,
}

/// The cause of a failed connection, for operators. TLS distinguishes a regular end from a cut, and describes
/// the latter in terms for programmers.
pub(crate) fn broken(error: &std::io::Error) -> String {
    match error.kind() {
        // The connection of a killed process ends without TLS's close message; if bytes were unread, its kernel
        // resets the connection.
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => {
            tracing::debug!(%error, "a connection ended without a goodbye");
            "the connection was cut: the process at its other end was killed, or its host or the path ended it"
                .to_owned()
        }
        _ => format!("the connection failed: {error}"),
    }
}

/// Reads the hub's authority from `dir`, or creates one there, and issues a certificate for this start.
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
    identity(certificate.der().clone(), ca_der, &key)
        .map_err(|error| sentence("the certificate can't be used", &error))
}

/// The public key of a node that sends for a hub, as hex of the point; the private one stays in `dir`, where
/// it is created on first use.
pub(crate) fn sender_key(dir: &Path) -> Result<String, String> {
    let path = dir.join(SENDER_KEY);
    let sentence =
        |error: &dyn std::fmt::Display| format!("the key {} can't be used: {error}", path.display());
    fs::create_dir_all(dir).map_err(|error| sentence(&error))?;
    if !path.exists() {
        let key = KeyPair::generate().map_err(|error| sentence(&error))?;
        write_private(&path, key.serialize_pem().as_bytes()).map_err(|error| sentence(&error))?;
    }
    let key = read_key(&path).map_err(|error| sentence(&error))?;
    Ok(hex(key.der_bytes()))
}

/// Signs the key of a node that sends for the hub with its authority in `dir`; returns the certificate and the
/// authority's own, DER in hex. The authority's private key never leaves the hub.
pub(crate) fn certify(dir: &Path, public_key: &str) -> Result<(String, String), String> {
    let key = SenderPublicKey::parse(public_key).ok_or(
        "the sender's key is not a point of P-256 in hex; remove the sender's data directory and start it again",
    )?;
    let sentence = |error: &dyn std::fmt::Display| format!("the sender's key can't be signed: {error}");
    let (ca_der, ca_key) = authority(dir).map_err(|error| sentence(&error))?;
    let issuer = Issuer::new(authority_params(), ca_key);
    let params = CertificateParams::new(vec![HUB_NAME.to_owned()]).map_err(|error| sentence(&error))?;
    let certificate = params.signed_by(&key, &issuer).map_err(|error| sentence(&error))?;
    Ok((hex(certificate.der()), hex(&ca_der)))
}

/// The identity of a node that sends for a hub: its own key, and the certificate that the hub's authority signed.
pub(crate) fn sender_identity(dir: &Path, certificate: &str, authority: &str) -> Result<HubIdentity, String> {
    let sentence = |what: &dyn std::fmt::Display| {
        format!(
            "the certificate of this sender can't be used: {what}; remove its data directory and start it again"
        )
    };
    let der = |text: &str| {
        from_hex(text).map(CertificateDer::from).ok_or_else(|| sentence(&"it is not hexadecimal"))
    };
    let key = read_key(&dir.join(SENDER_KEY)).map_err(|error| sentence(&error))?;
    identity(der(certificate)?, der(authority)?, &key).map_err(|error| sentence(&error))
}

fn identity(
    certificate: CertificateDer<'static>,
    authority: CertificateDer<'static>,
    key: &KeyPair,
) -> Result<HubIdentity, rustls::Error> {
    let ca_sha256 = sha256_hex(&authority);
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate, authority],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )?;
    Ok(HubIdentity { config: Arc::new(config), ca_sha256 })
}

fn read_key(path: &Path) -> Result<KeyPair, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    KeyPair::from_pem(&text).map_err(|error| error.to_string())
}

/// A public key from another node: a point of P-256, not compressed.
struct SenderPublicKey(Vec<u8>);

impl SenderPublicKey {
    fn parse(text: &str) -> Option<Self> {
        from_hex(text).filter(|point| point.len() == POINT_BYTES && point.first() == Some(&4)).map(Self)
    }
}

impl PublicKeyData for SenderPublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
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
    hex(digest(&SHA256, bytes).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs =
        text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// Atomically writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = path.with_extension("tmp");
    let file = File::create_private(&aside)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()?;
    disk::rename(&aside, path)?;
    // The name has to survive a power cut as well: others rely on this file.
    path.parent().map_or(Ok(()), disk::sync_directory)
}

fn authority(dir: &Path) -> Result<(CertificateDer<'static>, KeyPair), String> {
    let (certificate_path, key_path) = (dir.join("ca.pem"), dir.join("ca.key"));
    if !certificate_path.exists() {
        if key_path.exists() && has_been_used(dir) {
            return Err(damaged(&certificate_path, &"it is missing, and its key is there"));
        }
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = authority_params().self_signed(&key).map_err(|error| error.to_string())?;
        write_private(&key_path, key.serialize_pem().as_bytes()).map_err(|error| error.to_string())?;
        write_private(&certificate_path, certificate.pem().as_bytes()).map_err(|error| error.to_string())?;
    }
    let certificate = CertificateDer::from_pem_file(&certificate_path)
        .map_err(|error| damaged(&certificate_path, &error))?;
    let key = read_key(&key_path).map_err(|error| damaged(&key_path, &error))?;
    if !is_signed_by(&certificate, &key) {
        return Err(damaged(&certificate_path, &"its key did not sign it"));
    }
    Ok((certificate, key))
}

/// False if the first start ended between its key and its certificate: no site knows that key.
fn has_been_used(dir: &Path) -> bool {
    let logs = dir.parent().and_then(|node| fs::read_dir(node.join("log")).ok());
    logs.is_some_and(|mut feeds| feeds.next().is_some())
}

fn damaged(path: &Path, reason: &dyn std::fmt::Display) -> String {
    let path = path.display();
    format!("{path} is damaged ({reason}); restore it from the last backup: sites trust no other authority")
}

/// True if the certificate is intact and signed by its own key: sites identify it by the hash of all its bytes.
fn is_signed_by(certificate: &[u8], key: &KeyPair) -> bool {
    let parts = || {
        let (parts, nothing) = element(certificate, SEQUENCE)?;
        let (_, behind) = element(parts, SEQUENCE)?;
        let signed = parts.get(..parts.len() - behind.len())?;
        let signature = behind.strip_prefix(ECDSA_WITH_SHA256)?;
        let (signature, behind) = element(signature, BIT_STRING)?;
        (nothing.is_empty() && behind.is_empty()).then_some((signed, signature.strip_prefix(&[0])?))
    };
    parts().is_some_and(|(signed, signature)| {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.der_bytes()).verify(signed, signature).is_ok()
    })
}

/// The contents of the first DER element, which must have this tag, and the bytes after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.split_first()?;
    let (short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(*short), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => {
            rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?
        }
        _ => return None,
    };
    (*first == tag).then_some(())?;
    rest.split_at_checked(length)
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

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
/// RFC 5758, section 3.2, as DER.
const ECDSA_WITH_SHA256: &[u8] = &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const SENDER_KEY: &str = "sender.key";
/// One byte for the encoding, and two coordinates.
const POINT_BYTES: usize = 65;

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

    #[test]
    fn a_damaged_authority_is_named_with_its_file_and_never_made_anew() {
        let node = tempfile::tempdir().unwrap();
        let dir = node.path().join("tls");
        let made = hub_identity(&dir).unwrap().ca_sha256;
        fs::remove_file(dir.join("ca.pem")).unwrap();
        let again = hub_identity(&dir).unwrap().ca_sha256;
        assert_ne!(made, again, "nobody knew the one that was half made");
        fs::create_dir_all(node.path().join("log").join("X")).unwrap();
        for name in ["ca.pem", "ca.key"] {
            let path = dir.join(name);
            let good = fs::read(&path).unwrap();
            let refused = |what: &str| {
                let error = hub_identity(&dir).map(|_| ()).unwrap_err();
                let file = path.display().to_string();
                assert!(error.contains(&file) && error.contains("; restore it"), "{name} {what}: {error}");
            };
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, &bad).unwrap();
                match hub_identity(&dir) {
                    Ok(read) => assert_eq!(read.ca_sha256, again, "{name} byte {at}"),
                    Err(_) => refused(&format!("byte {at}")),
                }
            }
            fs::write(&path, &good[..good.len() / 2]).unwrap();
            refused("cut");
            fs::remove_file(&path).unwrap();
            refused("removed");
            fs::write(&path, &good).unwrap();
        }
        assert_eq!(hub_identity(&dir).unwrap().ca_sha256, again);
    }

    #[test]
    fn a_sender_shows_what_the_authority_signed_for_its_own_key() {
        let (hub, sender) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ca_sha256 = hub_identity(hub.path()).unwrap().ca_sha256;
        let key = sender_key(sender.path()).unwrap();
        assert_eq!(key, sender_key(sender.path()).unwrap(), "it is made once");
        let (certificate, authority) = certify(hub.path(), &key).unwrap();
        let identity = sender_identity(sender.path(), &certificate, &authority).unwrap();
        assert_eq!(identity.ca_sha256, ca_sha256, "a site's token of the hub is good at the sender");
        let other = tempfile::tempdir().unwrap();
        sender_key(other.path()).unwrap();
        assert!(sender_identity(other.path(), &certificate, &authority).is_err(), "the key is another one");
    }

    #[test]
    fn a_connection_without_a_goodbye_was_cut_however_its_end_was_noticed() {
        for kind in [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe] {
            let told = broken(&std::io::Error::new(
                kind,
                "peer closed without close_notify: https://docs.rs/rustls",
            ));
            assert!(told.contains("was killed") && !told.contains("docs.rs"), "{told}");
        }
        let other = std::io::Error::new(ErrorKind::TimedOut, "no answer in 20 s");
        assert_eq!(broken(&other), "the connection failed: no answer in 20 s");
    }

    #[test]
    fn what_is_no_key_is_not_signed() {
        let hub = tempfile::tempdir().unwrap();
        for bad in ["", "04", "zz", "04f", &"00".repeat(65), "\u{e9}"] {
            assert!(certify(hub.path(), bad).unwrap_err().contains("P-256"), "{bad:?}");
        }
    }
}
