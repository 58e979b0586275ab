//! Mutual TLS between siblings. Each site makes a key at its start; the hub passes on the fingerprints of the
//! certificates, and no authority is needed.
use std::sync::Arc;

use downburst_session::Fingerprint;
use rcgen::{CertificateParams, KeyPair};
use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The key of this site, for this start.
pub(super) struct Keys {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    acceptor: TlsAcceptor,
}

impl Keys {
    pub(super) fn generate() -> Result<Self, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let params = CertificateParams::new(vec![NAME.to_owned()]).map_err(|error| error.to_string())?;
        let certificate = params.self_signed(&key).map_err(|error| error.to_string())?.der().clone();
        let key = key.serialize_der();
        let acceptor = server(&certificate, &key).map_err(|error| error.to_string())?;
        Ok(Self { certificate, key, acceptor: TlsAcceptor::from(Arc::new(acceptor)) })
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.certificate)
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Accepts only the certificate with this fingerprint, and shows its own.
    pub(super) fn connector(&self, expected: &Fingerprint) -> Result<TlsConnector, String> {
        let provider = provider();
        let verifier = Pinned { expected: Some(*expected), provider: Arc::clone(&provider) };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(vec![self.certificate.clone()], private(&self.key))
            .map_err(|error| error.to_string())?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The fingerprint of a certificate.
pub(super) fn fingerprint(certificate: &[u8]) -> Fingerprint {
    let hash = digest(&SHA256, certificate);
    Fingerprint(hash.as_ref().try_into().unwrap_or_default())
}

/// The name in every sibling's certificate: the fingerprint counts, not the name.
pub(super) const NAME: &str = "sibling.downburst.internal";

fn server(certificate: &CertificateDer<'static>, key: &[u8]) -> Result<ServerConfig, rustls::Error> {
    let provider = provider();
    let verifier = Pinned { expected: None, provider: Arc::clone(&provider) };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(vec![certificate.clone()], private(key))?;
    // A resumed session would show no certificate.
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn private(key: &[u8]) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.to_vec()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Checks that the peer holds the key of its certificate, and that the certificate is the expected one. `None`: a
/// ticket decides afterwards which certificate is right.
#[derive(Debug)]
struct Pinned {
    expected: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match self.expected {
            Some(expected) if expected != fingerprint(certificate) => {
                Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
            _ => Ok(()),
        }
    }

    fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn old() -> rustls::Error {
    rustls::Error::General("siblings speak TLS 1.3 only".to_owned())
}
