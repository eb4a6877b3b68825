//! TLS between replicas. Both ends show the certificate that they serve the webhook by, and want to see the same one: only
//! replicas have its key. One that has just been given another certificate is not trusted until all have it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};

use super::tls::{Identity, TlsError};

/// Trusts one certificate.
#[derive(Debug)]
struct Same {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

/// The end that takes connections.
///
/// # Errors
/// When the certificate cannot be used.
pub fn server(identity: &Identity) -> Result<ServerConfig, TlsError> {
    let (chain, key) = identity.parsed()?;
    let same = Same::of(&chain);
    let builder = ServerConfig::builder_with_provider(same.provider.clone()).with_protocol_versions(&[&TLS13])?;
    Ok(builder.with_client_cert_verifier(same).with_single_cert(chain, key)?)
}

/// The end that connects.
///
/// # Errors
/// When the certificate cannot be used.
pub fn client(identity: &Identity) -> Result<ClientConfig, TlsError> {
    let (chain, key) = identity.parsed()?;
    let same = Same::of(&chain);
    let builder = ClientConfig::builder_with_provider(same.provider.clone()).with_protocol_versions(&[&TLS13])?;
    Ok(builder.dangerous().with_custom_certificate_verifier(same).with_client_auth_cert(chain, key)?)
}

impl Same {
    fn of(chain: &[CertificateDer<'static>]) -> Arc<Self> {
        let certificate = chain.first().cloned().unwrap_or_else(|| Vec::new().into());
        Arc::new(Self { certificate, provider: Arc::new(ring::default_provider()) })
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let same = !shown.is_empty() && **shown == *self.certificate;
        if same { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for Same {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for Same {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}
