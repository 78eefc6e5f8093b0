//! One connection to a service, with one request on its way at a time.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HeaderMap;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What was answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It took too long.
    Timeout,
    /// The connection broke.
    Lost,
    /// There was no connection, and nothing was sent.
    Unsent,
}

/// Nobody answers where a service should be.
#[derive(Debug, thiserror::Error)]
#[error("{host} cannot be reached: {source}")]
pub struct Unreachable {
    host: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Unreachable {
    pub(super) fn new(host: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { host: host.to_owned(), source: source.into() }
    }
}

/// A service's host and port, from its URL.
pub(super) fn host_of(url: &str) -> Result<String, Unreachable> {
    let unusable = |why: &str| Unreachable::new(url, why.to_owned());
    let parsed: Uri = url.parse().map_err(|error| Unreachable::new(url, error))?;
    match (parsed.scheme_str(), parsed.authority(), parsed.path()) {
        (Some("http"), Some(authority), "/" | "") => {
            Ok(format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80)))
        }
        (Some("http"), Some(_), _) => Err(unusable("the URL must not have a path")),
        _ => Err(unusable("use http://host:port")),
    }
}

/// A connection that is opened again after it broke.
pub(super) struct Connection {
    host: String,
    timeout: Duration,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    /// Opens a connection.
    pub(super) async fn open(host: &str, timeout: Duration) -> Result<Self, Unreachable> {
        let open = tokio::time::timeout(timeout, connect(host)).await;
        let open =
            open.map_err(|elapsed| Unreachable::new(host, elapsed))?.map_err(|error| Unreachable::new(host, error))?;
        Ok(Self { host: host.to_owned(), timeout, open: Some(open) })
    }

    /// A connection that is opened when it is first used.
    pub(super) fn closed(host: &str, timeout: Duration) -> Self {
        Self { host: host.to_owned(), timeout, open: None }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, NoAnswer> {
        let exchange = tokio::time::timeout(self.timeout, exchange(&mut self.open, &self.host, request)).await;
        let answer = exchange.unwrap_or(Err(NoAnswer::Timeout));
        if answer.is_err() {
            // Whatever comes back on it now belongs to nobody.
            self.open = None;
        }
        answer
    }
}

async fn exchange(
    open: &mut Option<SendRequest<Full<Bytes>>>,
    host: &str,
    request: Request<Full<Bytes>>,
) -> Result<Answer, NoAnswer> {
    let sender = match open {
        Some(sender) => sender,
        None => open.insert(connect(host).await.map_err(|_| NoAnswer::Unsent)?),
    };
    sender.ready().await.map_err(|_| NoAnswer::Unsent)?;
    let response = sender.send_request(request).await.map_err(|_| NoAnswer::Lost)?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| NoAnswer::Lost)?.to_bytes();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
}

async fn connect(host: &str) -> Result<SendRequest<Full<Bytes>>, Box<dyn Error + Send + Sync>> {
    let stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with its sender, or tells the sender how it ended.
    tokio::spawn(connection);
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_a_reason() {
        assert_eq!(host_of("http://127.0.0.1:8080").unwrap(), "127.0.0.1:8080");
        assert_eq!(host_of("http://shop.example/").unwrap(), "shop.example:80");
        assert_eq!(host_of("http://[::1]:9").unwrap(), "[::1]:9");
        for bad in ["https://shop.example", "shop.example", "http://shop.example/orders", "", "http://"] {
            assert!(host_of(bad).is_err(), "{bad}");
        }
    }
}
