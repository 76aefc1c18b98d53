//! A whole request body, bounded in bytes and in time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};

/// Why there is no whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than the source's limit; usually a delivery that is not from this sender.
    #[error("the body is longer than {bytes_max} bytes")]
    TooLarge {
        /// The limit that was passed.
        bytes_max: usize,
    },
    /// Not whole in time; usually a slow line, or a client that holds connections on purpose.
    #[error("the body was not whole in time")]
    TooSlow,
    /// The client went away or its framing is wrong.
    #[error("the body was cut")]
    Broken,
}

/// Reads the whole body, byte for byte.
///
/// A body that announces more than `bytes_max` is refused unread; one that
/// announces nothing is refused at the first byte over. `within` is a total,
/// from the call to the last byte.
///
/// # Errors
/// See [`BodyError`].
pub async fn read_whole(body: Incoming, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > bytes_max {
        return Err(BodyError::TooLarge { bytes_max });
    }
    match tokio::time::timeout(within, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge { bytes_max }),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::TooSlow),
    }
}
