//! A whole request body, bounded in bytes, in time, and with all others together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::listener::limits::{BODY_BYTES_IN_FLIGHT_MAX, DISCARD_BYTES_MAX, DISCARD_WITHIN};

/// Why there is no whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than the source's limit; usually a delivery that is not from this sender.
    #[error("the body is longer than {bytes_max} bytes")]
    TooLarge {
        /// The limit that was passed.
        bytes_max: usize,
    },
    /// All bodies together are as large as they may be; usually somebody sends many large ones at once.
    #[error("there is no room for the body among all that are held")]
    NoRoom,
    /// Not whole in time; usually a slow line, or a client that holds connections on purpose.
    #[error("the body was not whole in time")]
    TooSlow,
    /// The client went away or its framing is wrong.
    #[error("the body was cut")]
    Broken,
}

/// Room for bodies that are held together; cheap to clone, one for a source.
///
/// A body takes room for each piece when the piece is here, not for the length
/// that it announces: else a few announced bodies that never come would keep
/// all others out. It gives its room back when the last clone of it is dropped.
#[derive(Clone, Debug)]
pub struct BodyRoom {
    left: Arc<Semaphore>,
}

impl Default for BodyRoom {
    /// Room for [`BODY_BYTES_IN_FLIGHT_MAX`].
    fn default() -> Self {
        Self::new(BODY_BYTES_IN_FLIGHT_MAX)
    }
}

impl BodyRoom {
    /// Room for so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { left: Arc::new(Semaphore::new(bytes_max)) }
    }

    /// Bytes that still find room.
    pub fn bytes_left(&self) -> usize {
        self.left.available_permits()
    }

    /// Reads the whole body, byte for byte.
    ///
    /// A body that announces more than `bytes_max`, or turns out to be longer, is
    /// refused; some of its rest is thrown away (see [`discard`]). `within` is a
    /// total, from the call to the last byte.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub async fn read_whole(&self, mut body: Incoming, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
        let whole = tokio::time::timeout(within, self.collect(&mut body, bytes_max)).await;
        let whole = whole.unwrap_or(Err(BodyError::TooSlow));
        if matches!(whole, Err(BodyError::TooLarge { .. })) {
            discard(body).await;
        }
        whole
    }

    async fn collect(&self, body: &mut Incoming, bytes_max: usize) -> Result<Bytes, BodyError> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > bytes_max {
            return Err(BodyError::TooLarge { bytes_max });
        }
        let mut held = Held { bytes: Vec::new(), room: self.take(0)? };
        while let Some(frame) = body.frame().await {
            // Trailers mean nothing to us.
            let Ok(piece) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            if held.bytes.len().saturating_add(piece.len()) > bytes_max {
                return Err(BodyError::TooLarge { bytes_max });
            }
            held.room.merge(self.take(piece.len())?);
            held.bytes.extend_from_slice(&piece);
        }
        Ok(Bytes::from_owner(held))
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, BodyError> {
        let bytes = u32::try_from(bytes).map_err(|_| BodyError::NoRoom)?;
        Arc::clone(&self.left).try_acquire_many_owned(bytes).map_err(|_| BodyError::NoRoom)
    }
}

/// Reads a body that nobody wants for a moment and throws it away, so that its sender sees the answer.
///
/// A connection that is closed with unread bytes is reset, and the answer may be
/// lost with it. Gives up after [`DISCARD_WITHIN`] or at [`DISCARD_BYTES_MAX`].
pub async fn discard(mut body: Incoming) {
    let throw_away = async {
        let mut seen: usize = 0;
        while let Some(Ok(frame)) = body.frame().await {
            seen = seen.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            if seen > DISCARD_BYTES_MAX {
                return;
            }
        }
    };
    // Where it gives up the connection is reset after all.
    let _in_time = tokio::time::timeout(DISCARD_WITHIN, throw_away).await.is_ok();
}

/// Bytes with the room that they take.
struct Held {
    bytes: Vec<u8>,
    room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
