//! What an API server sends, in memory that is cleared when it is let go: among it are values of Secrets, which nobody reads.
//!
//! What the TLS library and the HTTP client hold of a message meanwhile is not cleared: they let go of it before it is read
//! here.

use std::io;

use futures::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};
use futures::stream::{self, BoxStream, StreamExt};
use kube::Client;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use zeroize::{Zeroize, Zeroizing};

/// Read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// What one event is likely to fit into; the API server takes objects of 1.5 MiB.
const EVENT_BYTES: usize = 64 << 10;

/// Adds to a text; where it has to move, the old place is cleared.
pub fn add(text: &mut Zeroizing<Vec<u8>>, bytes: &[u8]) {
    let needed = text.len() + bytes.len();
    if needed > text.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(text.capacity() * 2)));
        larger.extend_from_slice(text);
        *text = larger;
    }
    text.extend_from_slice(bytes);
}

/// Everything that comes.
///
/// # Errors
/// When it breaks off.
pub async fn read_all(mut body: impl AsyncRead + Unpin, likely_bytes: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(likely_bytes));
    let mut chunk = Zeroizing::new(vec![0; CHUNK_BYTES]);
    loop {
        let read = body.read(&mut chunk).await?;
        if read == 0 {
            return Ok(text);
        }
        add(&mut text, chunk.get(..read).unwrap_or_default());
    }
}

/// The events of a watch, as [`Client::request_events`] has them.
///
/// # Errors
/// When the watch does not begin.
pub async fn events<T: DeserializeOwned + Send + 'static>(
    client: &Client,
    mut request: axum::http::Request<Vec<u8>>,
) -> kube::Result<BoxStream<'static, kube::Result<WatchEvent<T>>>> {
    let identity = axum::http::HeaderValue::from_static("identity");
    request.headers_mut().insert(axum::http::header::ACCEPT_ENCODING, identity);
    let body = Box::pin(client.request_stream(request).await?);
    let line = Zeroizing::new(Vec::with_capacity(EVENT_BYTES));
    let next = |(mut body, mut line)| async move {
        match next_line(&mut body, &mut line).await {
            Ok(false) => None,
            Ok(true) => {
                let event = serde_json::from_slice(&line).map_err(kube::Error::SerdeError);
                Some((event, (body, line)))
            }
            // how a connection that goes ends a watch
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some((Err(kube::Error::ReadEvents(error)), (body, line))),
        }
    };
    Ok(stream::unfold((body, line), next).boxed())
}

/// Reads the next line in the place of the one before, which is cleared; whether there is a whole one.
async fn next_line(body: &mut (impl AsyncBufRead + Unpin), line: &mut Zeroizing<Vec<u8>>) -> io::Result<bool> {
    line.zeroize();
    loop {
        let chunk = body.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(false);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        add(line, chunk.get(..taken).unwrap_or_default());
        body.consume_unpin(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_whole_and_one_at_a_time() {
        let text = format!("one\n{}\nbroken off", "x".repeat(100_000));
        let mut body = futures::io::BufReader::with_capacity(7, text.as_bytes());
        let mut line = Zeroizing::new(Vec::new());
        let mut lengths = Vec::new();
        while next_line(&mut body, &mut line).await.unwrap() {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [4, 100_001]);
        assert_eq!(read_all(text.as_bytes(), 3).await.unwrap().as_slice(), text.as_bytes());
    }
}
