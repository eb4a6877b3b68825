//! Certificates for webhooks: an authority that lives as long as a suite, and what it signs.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::error::Error;

/// Where the API server calls webhooks: on this machine, by an address that it does not know to be loopback. It speaks
/// HTTP/1.1 then, over several connections, as it does with a Service; with loopback it speaks HTTP/2 over one
/// (`apiserver/pkg/util/webhook/client.go`, `hookClientConfig`), and only one replica would ever be asked.
pub const HOST: &str = "0.0.0.0";

/// Signs certificates for webhooks on this machine.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, PEM.
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// A new one.
    pub fn new() -> Result<Self, Error> {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let certificate = parameters.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(parameters, key) })
    }

    /// Its own certificate, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Signs a new certificate.
    pub fn identity(&self) -> Result<Identity, Error> {
        let names = [HOST.to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
