//! Nobody takes the door from the others: places by address, room for bodies.

use super::*;

fn post(announced: usize, sent: &str) -> String {
    format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {announced}\r\n\r\n{sent}")
}

/// P06: a hundred connections with half a body each; another server answered 503
/// to everybody else for as long as they were held.
#[tokio::test]
async fn half_bodies_keep_nobody_out() {
    let door = Running::plain(PATIENT, BodyRoom::default()).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = door.tcp().await;
        stream.write_all(post(16, "01234567").as_bytes()).await.unwrap();
        held.push(stream);
    }
    door.echo.called(100).await;
    let answer = door.ask(&post(16, "0123456789abcdef")).await;
    assert!(answer.ends_with("\r\n\r\n0123456789abcdef"), "{answer}");
    for mut stream in held {
        stream.write_all(b"89abcdef").await.unwrap();
        assert_eq!(status_of(&answer_header(&mut stream).await), "200");
    }
}

#[tokio::test]
async fn half_bodies_are_closed_by_their_deadline() {
    let server = Server::plain(PATIENT, Arc::default());
    let door = Running::start(server, Echo::new(BodyRoom::default(), SHORT)).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = door.tcp().await;
        stream.write_all(post(16, "01234567").as_bytes()).await.unwrap();
        held.push(stream);
    }
    for stream in held {
        assert_eq!(status_of(&last_words(stream, "").await), "408");
    }
}

#[tokio::test]
async fn one_address_has_so_many_connections() {
    let metrics = Arc::<crate::telemetry::Metrics>::default();
    let server = Server::plain(Limits { connections_per_address_max: 2, ..PATIENT }, Arc::clone(&metrics));
    let door = Running::start(server, Echo::new(BodyRoom::default(), LONG)).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = door.tcp().await;
        stream.write_all(GET.as_bytes()).await.unwrap();
        assert_eq!(status_of(&answer_header(&mut stream).await), "200");
        open.push(stream);
    }
    assert_eq!(last_words(door.tcp().await, "").await, "", "closed unread");
    assert!(metrics.render().contains("tambour_callers_refused_total 1\n"));
    for stream in &mut open {
        stream.write_all(GET.as_bytes()).await.unwrap();
        assert_eq!(status_of(&answer_header(stream).await), "200", "those that are open go on");
    }
    open.pop();
    door.ask_until("200", GET).await;
}

#[tokio::test]
async fn a_body_without_room_is_refused_and_the_others_go_on() {
    let door = Running::plain(PATIENT, BodyRoom::new(16)).await;
    let mut first = door.tcp().await;
    first.write_all(post(16, "0123456789ab").as_bytes()).await.unwrap();
    door.ask_until("503", &post(5, "01234")).await;
    assert_eq!(status_of(&door.ask(&post(4, "0123")).await), "200", "there is room for a small one");
    first.write_all(b"cdef").await.unwrap();
    assert!(whole_answer(&mut first, 16).await.ends_with("0123456789abcdef"));
    door.ask_until("200", &post(16, "0123456789abcdef")).await;
}

/// A client that announces bodies and sends none must not keep others out.
#[tokio::test]
async fn announced_bytes_take_no_room() {
    let door = Running::plain(PATIENT, BodyRoom::new(16)).await;
    let mut silent = door.tcp().await;
    silent.write_all(post(16, "").as_bytes()).await.unwrap();
    door.echo.called(1).await;
    assert_eq!(status_of(&door.ask(&post(16, "0123456789abcdef")).await), "200");
}

/// The room is for what is held, not only for what is being read.
#[tokio::test]
async fn a_body_takes_its_room_until_it_is_dropped() {
    let room = BodyRoom::new(16);
    let kept = Kept { room: room.clone(), bodies: Arc::default() };
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut running = JoinSet::new();
    running.spawn(Server::plain(PATIENT, Arc::default()).run(listener, kept.clone(), std::future::pending()));
    let ask = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(post(12, "0123456789ab").as_bytes()).await.unwrap();
        status_of(&answer_header(&mut stream).await).to_owned()
    };
    assert_eq!(ask().await, "200");
    assert_eq!(ask().await, "503");
    kept.bodies.lock().unwrap().clear();
    assert_eq!(ask().await, "200");
}

/// Keeps the bodies that it got.
#[derive(Clone)]
struct Kept {
    room: BodyRoom,
    bodies: Arc<std::sync::Mutex<Vec<Bytes>>>,
}

impl Service for Kept {
    async fn call(&self, request: Request<Incoming>, _peer: SocketAddr) -> Response<Full<Bytes>> {
        let mut answer = Response::new(Full::default());
        match self.room.read_whole(request.into_body(), BODY_BYTES_MAX, LONG).await {
            Ok(body) => self.bodies.lock().unwrap().push(body),
            Err(error) => {
                assert_eq!(error, BodyError::NoRoom);
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
        }
        answer
    }
}

/// Reads one answer with a body of so many bytes and leaves the connection open.
async fn whole_answer(stream: &mut (impl AsyncRead + Unpin), body_bytes: usize) -> String {
    let header = answer_header(stream).await;
    let mut body = vec![0; body_bytes];
    stream.read_exact(&mut body).await.unwrap();
    header + &String::from_utf8(body).unwrap()
}
