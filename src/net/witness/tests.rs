//! Servers that answer what a test says, and one after another.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// As a server of this run says it, with these lines about its replicas.
fn info(run: &str, role: &str, replicas: &[String]) -> String {
    let server = format!("# Server\r\nrun_id:{run}\r\nuptime_in_seconds:90\r\n");
    let lines: String = replicas.iter().map(|line| format!("{line}\r\n")).collect();
    let replication = format!(
        "# Replication\r\nrole:{role}\r\nconnected_slaves:{}\r\n{lines}master_replid:aa\r\n\
         master_replid2:bb\r\nmaster_repl_offset:200\r\nsecond_repl_offset:100\r\n",
        replicas.len(),
    );
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    bulk(&server) + &bulk(&replication) + TIME
}

/// A second after 1970, and five microseconds.
const TIME: &str = "*2\r\n$1\r\n1\r\n$1\r\n5\r\n";

fn line(number: usize, at: SocketAddr) -> String {
    format!(
        "slave{number}:ip={},port={},state=online,offset=14,lag=0",
        at.ip(),
        at.port()
    )
}

/// A server that reads all questions, and then does this.
fn server(then: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("it is asked");
        let mut question = Vec::new();
        let mut part = [0; 256];
        while !question.ends_with(b"TIME\r\n") {
            let count = socket.read(&mut part).expect("a question");
            assert!(count > 0, "the whole question");
            question.extend_from_slice(&part[..count]);
        }
        then(socket);
    });
    address
}

/// One that answers this.
fn answering(text: String) -> SocketAddr {
    server(move |mut socket| {
        let half = text.len() / 2;
        for part in [&text[..half], &text[half..]] {
            socket.write_all(part.as_bytes()).expect("it listens");
        }
    })
}

/// One that says nothing until it is left.
fn silent() -> SocketAddr {
    server(|mut socket| {
        let _ = socket.read_to_end(&mut Vec::new());
    })
}

fn told(master: SocketAddr, auth: &LookupAuth, limit: Duration) -> Vec<Told> {
    let place = MasterPlace {
        host: "127.0.0.1".to_owned(),
        address: master,
    };
    let mut all = Vec::new();
    let inquiry = auth.inquiries.begin().expect("there is no other");
    let until = clock::now().after(limit);
    ask_all(&place, auth, until, &inquiry, |told| all.push(told));
    all
}

/// The run that is told of this place, or why none is.
fn run_at(told: &[Told], port: u16) -> Result<String, String> {
    let of_place: Vec<_> = told.iter().filter(|told| told.place.port == port).collect();
    assert_eq!(of_place.len(), 1, "{told:?}");
    match &of_place[0].history {
        Ok(history) => Ok(history.run_id.clone()),
        Err(problem) => Err(problem.to_string()),
    }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn the_master_is_told_of_first_and_then_each_server_that_it_lists() {
    let some = answering(info("r1", "slave", &[]));
    let other = answering(info("r2", "slave", &[]));
    let lines = [line(0, some), line(1, other)];
    let master = answering(info("m", "master", &lines));
    let told = told(master, &LookupAuth::default(), LONG);
    assert_eq!(told.len(), 3);
    let of_master = told[0].history.as_ref().expect("it has answered");
    assert!(of_master.is_master && of_master.run_id == "m");
    assert_eq!(of_master.former, Some(("bb".to_owned(), 100)));
    let clocks: Vec<_> = told.iter().filter_map(|told| told.clock).collect();
    assert_eq!(clocks.len(), 3);
    for clock in clocks {
        assert_eq!(clock.micros, 1_000_005);
        assert!(clock.between.0 <= clock.between.1 && clock.between.1 <= clock::now());
    }
    assert_eq!(run_at(&told, some.port()), Ok("r1".to_owned()));
    assert_eq!(run_at(&told, other.port()), Ok("r2".to_owned()));
}

#[test]
fn who_cannot_be_asked_is_left_out_with_the_reason_and_delays_nobody() {
    let refusing = answering("-NOPERM no\r\n".repeat(3));
    let hiding = answering(format!("$9\r\n# Server\n\r\n$0\r\n\r\n{TIME}"));
    let ending = server(drop);
    let silent = silent();
    let good = answering(info("r", "slave", &[]));
    let all = [refusing, hiding, ending, silent, good];
    let lines: Vec<_> = (0..)
        .zip(all)
        .map(|(number, at)| line(number, at))
        .collect();
    let master = answering(info("m", "master", &lines));
    let told = told(master, &LookupAuth::default(), Duration::from_secs(4));
    assert_eq!(run_at(&told, good.port()), Ok("r".to_owned()));
    let last = told.last().expect("some");
    assert_eq!(
        last.place.port,
        silent.port(),
        "the others were told of before"
    );
    let reason = |at: SocketAddr| run_at(&told, at.port()).expect_err("it says nothing");
    assert!(reason(refusing).contains("NOPERM"), "{}", reason(refusing));
    assert!(reason(hiding).contains("INFO"), "{}", reason(hiding));
    assert!(reason(silent).contains("timed out"), "{}", reason(silent));
    assert!(reason(ending).contains("lost"), "{}", reason(ending));
}

#[test]
fn without_the_master_nobody_else_is_asked() {
    let told = told(
        answering("-LOADING data\r\n".repeat(3)),
        &LookupAuth::default(),
        LONG,
    );
    assert_eq!(told.len(), 1);
    assert!(told[0].history.is_err());
}

#[test]
fn a_wrong_password_is_the_reason_and_one_that_is_not_needed_is_none() {
    let auth = LookupAuth {
        servers: Login {
            user: None,
            password: Some(b"hush".to_vec()),
        },
        ..LookupAuth::default()
    };
    let refused = format!("-WRONGPASS no hush\r\n{}", "-NOAUTH first\r\n".repeat(3));
    let told_of = told(answering(refused), &auth, LONG);
    let reason = run_at(&told_of, told_of[0].place.port).expect_err("it is refused");
    assert!(
        reason.contains("WRONGPASS") && !reason.contains("hush"),
        "{reason}"
    );
    let open = format!("-ERR no password is set\r\n{}", info("m", "master", &[]));
    let told = told(answering(open), &auth, LONG);
    assert!(told[0].history.is_ok());
}

#[test]
fn an_address_that_is_another_server_on_each_machine_is_not_asked() {
    let elsewhere = "10.0.0.5".parse().expect("an address");
    let place = HostPort {
        host: "127.0.0.1".to_owned(),
        port: silent().port(),
    };
    let asked = ask_replica(&place, elsewhere, &LookupAuth::default(), clock::now());
    let problem = asked.expect_err("it is not asked");
    assert_eq!(problem, NodeError::WrongServer(WrongServer::Loopback));
}

#[test]
fn lines_of_replicas_are_read() {
    for (line, expected) in [
        (
            "slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0",
            Some(("10.0.0.2", 6379)),
        ),
        (
            "slave12:ip=::1,port=7,state=wait_bgsave,offset=0,lag=0,type=replica",
            Some(("::1", 7)),
        ),
        (
            "slave0:ip=db.example,port=6379,state=online",
            Some(("db.example", 6379)),
        ),
        ("slave0:ip=,port=6379,state=online", None),
        ("slave0:ip=10.0.0.2,port=0,state=online", None),
        ("slave0:port=6379,state=online", None),
        ("slave_priority:100", None),
        ("slave:ip=10.0.0.2,port=1", None),
        ("master_host:ip=10.0.0.2,port=1", None),
    ] {
        let found = replica(line).map(|place| (place.host, place.port));
        let expected = expected.map(|(host, port)| (host.to_owned(), port));
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn few_inquiries_hang() {
    let inquiries = Inquiries::default();
    let copy = inquiries.clone();
    let mut running: Vec<_> = (0..INQUIRIES_MAX).map(|_| copy.begin()).collect();
    assert!(running.iter().all(Option::is_some));
    assert!(inquiries.begin().is_none());
    running.pop();
    assert!(inquiries.begin().is_some());
}

#[test]
fn a_server_that_does_not_tell_the_time_tells_its_history() {
    let hidden = info("m", "master", &[]).replace(TIME, "-NOPERM no\r\n");
    let told = told(answering(hidden), &LookupAuth::default(), LONG);
    assert!(told[0].history.is_ok() && told[0].clock.is_none());
}
