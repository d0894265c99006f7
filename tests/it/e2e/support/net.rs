//! The way from readers to the gateway: they know its public address only, which stays the same
//! when the gateway starts anew on another port.

use reqwest::{Client, RequestBuilder, Response};
use std::sync::{Arc, Mutex};

/// The public address of the gateway.
pub const PUBLIC: &str = "http://gateway.example";

/// A client for which the public address leads to the gateway.
#[derive(Clone)]
pub struct Net {
    client: Client,
    gateway: Arc<Mutex<String>>,
}

impl Net {
    pub fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        Self { client, gateway: Arc::default() }
    }

    /// Says where the gateway really is.
    pub fn lead_to(&self, address: std::net::SocketAddr) {
        *self.gateway.lock().unwrap() = format!("http://{address}");
    }

    /// A request to a public address of the gateway.
    pub fn request(&self, method: reqwest::Method, address: &str) -> RequestBuilder {
        let path = address.strip_prefix(PUBLIC);
        let path = path.unwrap_or_else(|| panic!("{address} is not an address of the gateway"));
        let address = format!("{}{path}", self.gateway.lock().unwrap());
        self.client.request(method, address)
    }

    /// A GET.
    pub fn get(&self, address: &str) -> RequestBuilder {
        self.request(reqwest::Method::GET, address)
    }

    /// The text of an answer with status 200.
    pub async fn text(&self, address: &str) -> String {
        let answer = self.get(address).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{address}");
        answer.text().await.unwrap()
    }
}

/// A header of an answer, as text.
pub fn header(answer: &Response, name: &str) -> Option<String> {
    answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}
