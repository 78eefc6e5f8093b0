//! A TCP proxy in front of a server: the network a test can break. It knows no protocol.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use segstock::rig::ports::start_on_free_port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::wait::eventually;

/// A request that fits is seen as a whole, and can be searched.
const CHUNK_BYTES: usize = 256 * 1024;

const BIND_WITHIN: Duration = Duration::from_secs(10);

/// A proxy that forwards until it is told otherwise.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    network: Arc<Network>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Network {
    target: SocketAddr,
    black_hole: watch::Sender<bool>,
    delay: Mutex<Duration>,
    needle: Mutex<Option<Vec<u8>>>,
    hits: watch::Sender<usize>,
    connections: Mutex<JoinSet<io::Result<()>>>,
}

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Proxy {
        let network = Arc::new(Network {
            target,
            black_hole: watch::Sender::new(false),
            delay: Mutex::default(),
            needle: Mutex::default(),
            hits: watch::Sender::new(0),
            connections: Mutex::default(),
        });
        let bind = async |address| Ok::<_, Box<dyn Error>>(TcpListener::bind(address).await?);
        let (address, listener) = start_on_free_port(bind).await.expect("the proxy can listen");
        let accepting = Mutex::new(Some(tokio::spawn(accept(listener, network.clone()))));
        Proxy { address, network, accepting }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same `redis://` or `postgres://` address, by way of this proxy.
    pub(crate) fn url_through(&self, url: &str) -> String {
        let authority_start = url.find("://").expect("an address with a scheme") + 3;
        let authority_end = url[authority_start..].find(['/', '?']).map_or(url.len(), |end| authority_start + end);
        let host_start =
            url[authority_start..authority_end].rfind('@').map_or(authority_start, |at| authority_start + at + 1);
        format!("{}{}{}", &url[..host_start], self.address, &url[authority_end..])
    }

    /// Works again. Connections that have lived in the black hole are closed: bytes are missing.
    pub(crate) async fn forward(&self) {
        self.network.black_hole.send_replace(false);
        self.listen().await;
    }

    /// Closes all connections, and lets new ones be refused.
    pub(crate) async fn cut(&self) {
        let accepting = self.accepting.lock().expect("no panic under lock").take();
        if let Some(accepting) = accepting {
            accepting.abort();
            // Only then is the listener closed.
            let _ = accepting.await;
        }
        let mut connections = std::mem::take(&mut *self.network.connections());
        connections.shutdown().await;
    }

    /// Keeps connections open and accepts new ones, and loses whatever is sent over them.
    pub(crate) async fn black_hole(&self) {
        self.network.black_hole.send_replace(true);
        self.listen().await;
    }

    /// Holds everything that clients send back for this time. Zero ends it.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.network.delay.lock().expect("no panic under lock") = delay;
    }

    /// Arms a trap for one request: the next chunk from a client that contains `needle` reaches
    /// the server, the server does its work, its answer is lost and the connection closed. So
    /// looks a connection that is cut during the commit.
    ///
    /// sqlx sends the text of a statement only the first time on each connection, and prepares it
    /// before it executes it: choose a parameter's value as the needle, such as a customer id. Text
    /// goes over the wire as it is, in arrays too.
    pub(crate) fn drop_answer_after(&self, needle: impl Into<Vec<u8>>) {
        self.network.hits.send_replace(0);
        *self.network.needle.lock().expect("no panic under lock") = Some(needle.into());
    }

    /// Whether the trap has snapped since it was armed: the server has finished the request.
    pub(crate) fn armed_hit(&self) -> bool {
        *self.network.hits.borrow() > 0
    }

    /// Waits until [`Proxy::armed_hit`].
    pub(crate) async fn wait_hit(&self, within: Duration) {
        let mut hits = self.network.hits.subscribe();
        let hit = tokio::time::timeout(within, hits.wait_for(|hits| *hits > 0)).await;
        assert!(hit.is_ok(), "no request with the needle within {within:?}");
    }

    async fn listen(&self) {
        let listens = self.accepting.lock().expect("no panic under lock").is_some();
        if listens {
            return;
        }
        let listener = eventually("the proxy gets its port back", BIND_WITHIN, async || {
            TcpListener::bind(self.address).await.ok()
        })
        .await;
        let accepting = tokio::spawn(accept(listener, self.network.clone()));
        *self.accepting.lock().expect("no panic under lock") = Some(accepting);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Ok(Some(accepting)) = self.accepting.get_mut() {
            accepting.abort();
        }
        self.network.connections().abort_all();
    }
}

impl Network {
    fn connections(&self) -> std::sync::MutexGuard<'_, JoinSet<io::Result<()>>> {
        self.connections.lock().expect("no panic under lock")
    }

    /// Disarms the trap when `chunk` contains the needle.
    fn springs_trap(&self, chunk: &[u8]) -> bool {
        let mut needle = self.needle.lock().expect("no panic under lock");
        needle.take_if(|needle| contains(chunk, needle)).is_some()
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len().max(1)).any(|window| window == needle)
}

async fn accept(listener: TcpListener, network: Arc<Network>) {
    loop {
        // A client may be gone before it is accepted; the next one is served.
        if let Ok((client, _)) = listener.accept().await {
            let serving = serve(client, network.clone());
            let mut connections = network.connections();
            while connections.try_join_next().is_some() {}
            connections.spawn(serving);
        }
    }
}

/// One connection, from its acceptance to its end.
async fn serve(mut client: TcpStream, network: Arc<Network>) -> io::Result<()> {
    let mut black_hole = network.black_hole.subscribe();
    client.set_nodelay(true)?;
    // Kept open in the black hole: a server behind a broken network notices nothing either.
    let mut server = None;
    if !*black_hole.borrow() {
        let server = server.insert(TcpStream::connect(network.target).await?);
        server.set_nodelay(true)?;
        tokio::select! {
            ended = relay(&mut client, server, &network) => return ended,
            _ = black_hole.wait_for(|lost| *lost) => {}
        }
    }
    tokio::select! {
        ended = discard(&mut client) => ended,
        _ = black_hole.wait_for(|lost| !*lost) => Ok(()),
    }
}

async fn relay(client: &mut TcpStream, server: &mut TcpStream, network: &Network) -> io::Result<()> {
    let (client_reader, client_writer) = client.split();
    let (server_reader, server_writer) = server.split();
    let request = tokio::select! {
        ended = relay_answers(server_reader, client_writer) => return ended,
        trapped = relay_requests(client_reader, server_writer, network) => trapped?,
    };
    lose_answer(client, server, &request).await?;
    network.hits.send_modify(|hits| *hits += 1);
    Ok(())
}

async fn relay_answers(mut server: ReadHalf<'_>, mut client: WriteHalf<'_>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match server.read(&mut chunk).await? {
            0 => return Ok(()),
            length => client.write_all(&chunk[..length]).await?,
        }
    }
}

/// Ends with the request that sprang the trap, which the server has not got yet.
async fn relay_requests(mut client: ReadHalf<'_>, mut server: WriteHalf<'_>, network: &Network) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = client.read(&mut chunk).await?;
        if length == 0 {
            // The server may still have something to say.
            server.shutdown().await?;
            std::future::pending::<()>().await;
        }
        let delay = *network.delay.lock().expect("no panic under lock");
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if network.springs_trap(&chunk[..length]) {
            return Ok(chunk[..length].to_vec());
        }
        server.write_all(&chunk[..length]).await?;
    }
}

/// Returns when the server has done everything that was asked of it on this connection.
async fn lose_answer(client: &mut TcpStream, server: &mut TcpStream, request: &[u8]) -> io::Result<()> {
    server.write_all(request).await?;
    // The request may be longer than one chunk; it is complete when the server begins to answer.
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut answer = vec![0; CHUNK_BYTES];
    loop {
        tokio::select! {
            length = client.read(&mut chunk) => match length {
                Ok(length) if length > 0 => server.write_all(&chunk[..length]).await?,
                _ => break,
            },
            _ = server.read(&mut answer) => break,
        }
    }
    // An answer may come in several pieces, the first of them before the commit. A server that
    // finds the end of its input has done all that came before, and closes the connection.
    server.shutdown().await?;
    // A reset ends it as well.
    let _ = discard(server).await;
    Ok(())
}

async fn discard(stream: &mut TcpStream) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    while stream.read(&mut chunk).await? > 0 {}
    Ok(())
}
