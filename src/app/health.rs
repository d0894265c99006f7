//! `tidegate health`: asks the gateway on this machine whether it lives, as a container's health check does.

use super::running::reachable;
use super::{AppError, ConfigSource};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::ServerSection;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long the answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The most bytes that are read of it.
const ANSWER_LIMIT: u64 = 16 * 1024;
/// How an answer begins where the gateway lives.
const ALIVE: &str = "HTTP/1.1 200 ";

/// Asks `/healthz` where the gateway of this configuration listens. An error where it does not answer.
pub async fn health(settings: ConfigSource) -> Result<(), AppError> {
    let server = settings.load()?.config.server;
    let address = reachable(server.listen);
    let asking = ask(address, &server);
    let answer = match tokio::time::timeout(ANSWER_TIME, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
    };
    let answer = answer.map_err(|error| {
        AppError::run(format!("{}/healthz does not answer", server.origin(address)), error)
    })?;
    match answer.starts_with(ALIVE) {
        true => Ok(()),
        false => {
            let said = answer.lines().next().unwrap_or_default().to_owned();
            let what =
                format!("{}/healthz does not say that the gateway lives", server.origin(address));
            Err(AppError::run(what, std::io::Error::other(said)))
        }
    }
}

async fn ask(address: SocketAddr, server: &ServerSection) -> std::io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    if !server.speaks_tls() {
        return talk(stream, address).await;
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    talk(TlsConnector::from(Arc::new(config)).connect(name, stream).await?, address).await
}

async fn talk(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    address: SocketAddr,
) -> std::io::Result<String> {
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_LIMIT).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Takes any certificate: the question is whether a process on this machine answers, which is no secret, and
/// the certificate is for another name.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_reached_at_this_machine() {
        for (listen, asked) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
