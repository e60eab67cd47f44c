//! The certificate of a server.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::options::TlsFiles;
use crate::{Error, Result};

/// Encrypts connections with the certificate in `files`.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let TlsFiles { certificate, key } = files;
    let wrong = |file: &Path, found: String, expected| Error::Secret { file: file.to_owned(), found, expected };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, error.to_string(), "a certificate as PEM"))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| wrong(key, error.to_string(), "the private key of the certificate as PEM"))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(certificate, error.to_string(), "a certificate that fits its key"))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
