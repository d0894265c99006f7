//! A site that is reached by a proxy (`polling.proxy`) which cuts off: the client gets 502 or a body that breaks
//! off, never a short one that looks whole; and nothing is asked for twice that may not be.

use crate::origins::{Front, HOST};
use crate::support::prelude::*;
use reqwest::Method;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const SITE: &str = "news.invalid";

/// What a proxy does with a connection before it closes it without a word.
#[derive(Clone)]
enum ProxyScript {
    /// It answers a request with these bytes, whatever it is.
    Answers(&'static str),
    /// It opens a tunnel to a site with TLS, which answers with these bytes.
    Tunnels(&'static str, TlsAcceptor),
}

struct CuttingProxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl CuttingProxy {
    async fn start(script: ProxyScript) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (script, noted) = (script.clone(), Arc::clone(&noted));
                tokio::spawn(async move {
                    let Some(line) = read_request(&mut socket).await else { return };
                    match script {
                        ProxyScript::Answers(answer) => {
                            noted.lock().unwrap().push(line);
                            let _ = socket.write_all(answer.as_bytes()).await;
                        }
                        ProxyScript::Tunnels(answer, site) => {
                            assert!(line.starts_with("CONNECT "), "{line}");
                            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                            let Ok(mut stream) = site.accept(socket).await else { return };
                            let Some(line) = read_request(&mut stream).await else { return };
                            noted.lock().unwrap().push(line);
                            let _ = stream.write_all(answer.as_bytes()).await;
                            let _ = stream.flush().await;
                        }
                    }
                });
            }
        });
        Self { url, asked }
    }

    /// A gateway in front of the site, which it reaches by this proxy; `ca_file`: the certificate of the site.
    async fn front(&self, scheme: &str, ca_file: &str) -> Front {
        let text = format!(
            "proxy = \"{}\"\nproxy_resolves = true\nca_file = \"{ca_file}\"\n\
             [[origin]]\nname = \"news\"\nurl = \"{scheme}://{SITE}/\"\nhost = \"{HOST}\"\npass = true\n",
            self.url
        );
        Front::start(&text, Some(HOST)).await
    }

    /// How often it was asked since this was asked last.
    fn asked(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().unwrap()).len()
    }
}

/// Reads a request with its body, so that closing the connection takes back nothing of the answer. Its first line;
/// `None` where none came.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let head = read_until(stream, "\r\n\r\n").await?;
    let lower = head.to_lowercase();
    if let Some((_, length)) = lower.split_once("\r\ncontent-length: ") {
        let length = length.lines().next()?.parse().ok()?;
        stream.read_exact(&mut vec![0; length]).await.ok()?;
    } else if lower.contains("\r\ntransfer-encoding: chunked") {
        read_until(stream, "0\r\n\r\n").await?;
    }
    head.lines().next().map(str::to_owned)
}

async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        read.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(read).ok()
}

/// What a client gets of a request: its status, and whether the answer is whole; nothing where none comes.
async fn outcome(front: &Front, method: &Method, path: &str) -> Option<(u16, bool)> {
    let request = front.ask(method.clone(), path);
    let request = if *method == Method::POST { request.body("a body") } else { request };
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, answer.bytes().await.is_ok()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// 502, with all of its text.
    BadGateway,
    /// A body that breaks off, or 502.
    Broken,
    Whole,
}

fn site(folder: &tempfile::TempDir) -> (TlsAcceptor, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec![SITE.to_owned()]).unwrap();
    let path = folder.path().join("site.pem");
    std::fs::write(&path, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_proxy_cuts_off_makes_no_whole_answer() {
    use ProxyScript::{Answers, Tunnels};
    use Wanted::{BadGateway, Broken, Whole};
    let folder = tempfile::tempdir().unwrap();
    let (site, certificate) = site(&folder);
    let certificate = certificate.display().to_string();
    // The authority of other tests, which vouches for nothing here: it is there so that some are known at all.
    let other = root("src/net/fetch/clients/test-ca.pem").display().to_string();
    let tunnel = |answer| Tunnels(answer, site.clone());
    let whole = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nwords";
    let short = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 99\r\n\r\nshort";
    let chunk = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n";
    // Its end would be that of the connection, which TLS has not said to be over (RFC 8446 section 6.1).
    let unsaid = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nshort";
    // A GET may be asked for twice where nothing of an answer came.
    for (scheme, script, wanted, times) in [
        ("http", Answers(""), BadGateway, 2..=2),
        ("http", Answers("HTTP/1.1 200 OK\r\ncontent-type: text/pl"), BadGateway, 2..=2),
        ("http", Answers(short), Broken, 1..=1),
        ("http", Answers(chunk), Broken, 1..=1),
        ("https", Answers(""), BadGateway, 1..=2),
        ("https", Answers("HTTP/1.1 200 Conn"), BadGateway, 1..=2),
        // It ends before the handshake.
        ("https", Answers("HTTP/1.1 200 Connected\r\n\r\n"), BadGateway, 1..=2),
        ("https", Answers("HTTP/1.1 503 Not Now\r\n\r\n"), BadGateway, 1..=2),
        ("https", tunnel(whole), Whole, 1..=1),
        ("https", tunnel(short), Broken, 1..=1),
        ("https", tunnel(unsaid), Broken, 1..=1),
    ] {
        let (what, ca_file) = match &script {
            Answers(answer) => (format!("{scheme} {answer:?}"), &other),
            Tunnels(answer, _) => (format!("{scheme}, in a tunnel {answer:?}"), &certificate),
        };
        let proxy = CuttingProxy::start(script).await;
        let front = proxy.front(scheme, ca_file).await;
        for (method, times) in [(Method::GET, times), (Method::POST, 1..=1)] {
            let got = outcome(&front, &method, "/a").await;
            let is_wanted = match wanted {
                BadGateway => got == Some((502, true)),
                Whole => got == Some((200, true)),
                Broken => got.is_none_or(|(status, is_whole)| match is_whole {
                    true => status == 502 && scheme == "http",
                    false => status == 200,
                }),
            };
            let asked = proxy.asked();
            assert!(is_wanted && times.contains(&asked), "{method} {what}: {got:?}, {asked} times");
        }
        front.gateway.stop().await;
    }
}
