//! What else goes on at a public door: silent connections, dribbling ones, and a flood on another source.
//!
//! They come from loopback addresses of their own (127.0.0.2 and on), as many
//! from each as the door lets one have, and open again whenever they are closed.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::cli::check::sample;
use crate::cli::demo::folder::ADDRESS_TOKEN;
use crate::clock::SharedClock;
use crate::sandbox::{SendError, Sender};

/// Connections that have asked once and are silent since.
const IDLE: usize = 2000;
/// Connections that send a byte of a header every second.
const DRIBBLING: usize = 500;
/// Connections of one address that post to the unsigned source as fast as it answers.
const FLOODING: usize = 32;

/// Below what the door lets one address have.
const PER_ADDRESS: usize = 50;
/// So long the silent and the dribbling may take to stand; what does not stand by then is told.
const STAND_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const DRIBBLE_EVERY: Duration = Duration::from_secs(1);
/// Before a connection that was refused is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

const ACCOUNT: u64 = 31_000_001;

/// The disturbance, until it is dropped.
pub(super) struct Disturbance {
    standing: Arc<AtomicUsize>,
    flood: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Disturbance {
    /// Opens everything and waits until it stands.
    pub(super) async fn begin(sender: &Sender, clock: &SharedClock) -> Self {
        let (standing, flood) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for number in 0..IDLE + DRIBBLING {
            let peer = Peer { sender: sender.clone(), clock: clock.clone(), from: address(number) };
            tasks.spawn(peer.stand(number >= IDLE, Arc::clone(&standing)));
        }
        let give_up = clock.monotonic().plus(STAND_WITHIN);
        while standing.load(Ordering::Relaxed) < IDLE + DRIBBLING && clock.monotonic() < give_up {
            clock.sleep(LOOK_EVERY).await;
        }
        for number in 0..FLOODING {
            let from = Ipv4Addr::new(127, 0, 0, 200).into();
            let peer = Peer { sender: sender.clone(), clock: clock.clone(), from };
            tasks.spawn(peer.flood(number, Arc::clone(&flood)));
        }
        Self { standing, flood, _tasks: tasks }
    }

    /// How many silent and dribbling connections stand now.
    pub(super) fn standing(&self) -> usize {
        self.standing.load(Ordering::Relaxed)
    }

    /// How many of the flood were answered so far.
    pub(super) fn flooded(&self) -> u64 {
        self.flood.load(Ordering::Relaxed)
    }
}

/// The address of a silent or dribbling connection.
fn address(number: usize) -> IpAddr {
    let last = u8::try_from(2 + number / PER_ADDRESS).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, 0, 0, last).into()
}

struct Peer {
    sender: Sender,
    clock: SharedClock,
    from: IpAddr,
}

impl Peer {
    /// Stands again and again.
    async fn stand(self, dribbles: bool, standing: Arc<AtomicUsize>) {
        loop {
            if let Ok(stream) = self.sender.connect(Some(self.from)).await {
                standing.fetch_add(1, Ordering::Relaxed);
                let ended = if dribbles { self.dribble(stream).await } else { idle(stream).await };
                standing.fetch_sub(1, Ordering::Relaxed);
                drop(ended);
            }
            self.clock.sleep(AGAIN_AFTER).await;
        }
    }

    /// A byte a second of a header that never ends, until the door ends it.
    async fn dribble(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut answer = [0; 64];
        stream.write_all(b"POST /in/shop HTTP/1.1\r\nx: ").await?;
        loop {
            tokio::select! {
                read = stream.read(&mut answer) => return read.map(drop),
                () = self.clock.sleep(DRIBBLE_EVERY) => {}
            }
            stream.write_all(b"x").await?;
            stream.flush().await?;
        }
    }

    /// Posts one change of a deal after another.
    async fn flood(self, number: usize, answered: Arc<AtomicU64>) {
        let mut at = self.clock.now().plus(Duration::from_hours(u64::try_from(number).unwrap_or_default()));
        loop {
            if self.flood_one_line(&mut at, &answered).await.is_err() {
                self.clock.sleep(AGAIN_AFTER).await;
            }
        }
    }

    async fn flood_one_line(&self, at: &mut crate::domain::Timestamp, answered: &AtomicU64) -> Result<(), SendError> {
        let path = format!("/in/crm/{ADDRESS_TOKEN}");
        let headers = [("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        let mut line = self.sender.line(Some(self.from)).await?;
        loop {
            *at = at.plus(Duration::from_secs(1));
            line.post(&path, &headers, sample::moved_lead(ACCOUNT, *at).into()).await?;
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Asks as a sender's probe does, and is silent until the door closes.
async fn idle(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    stream.write_all(b"GET /in/shop HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    stream.flush().await?;
    let mut answer = [0; 256];
    while stream.read(&mut answer).await? > 0 {}
    Ok(())
}
