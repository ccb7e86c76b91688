//! A web service on axum whose requests take locks: a request whose client has hung up no longer
//! waits for one.
//!
//! ```sh
//! cargo run -p redlatch-integrations --example from_axum
//! cargo run -p redlatch-integrations --example from_axum -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts three Redis-like nodes inside this process. It is its own client:
//! one that hangs up, and one that waits for its answer.
//!
//! axum drops the future of a request when the connection ends, and with it the call that waits for
//! the lock.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use redlatch::embedded::Nodes;
use redlatch::{Error, LockClient, LockGuard};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// For how long a request waits for the lock of its order, before it answers that it is busy.
const WAIT: Duration = Duration::from_secs(30);

/// `POST /orders/42/charge`: charges an order, which no other request does at the same time.
async fn charge(
    State(client): State<LockClient>,
    Path(order): Path<String>,
) -> Result<String, (StatusCode, String)> {
    let request = client.request(format!("orders:{order}")).keep_alive();
    let Some(lock) = request
        .try_lock_for_async(WAIT)
        .await
        .map_err(|error| refusal(&error))?
    else {
        let text = "others charge this order\n".to_owned();
        return Err((StatusCode::CONFLICT, text));
    };
    // A task of its own: what has begun to charge goes on to its end, although nobody waits for the
    // answer.
    let work = tokio::spawn(charge_under(lock, order));
    match work.await {
        Ok(charged) => charged.map_err(|error| refusal(&error)),
        Err(panic) => Err((StatusCode::INTERNAL_SERVER_ERROR, panic.to_string())),
    }
}

async fn charge_under(lock: LockGuard, order: String) -> Result<String, Error> {
    lock.ensure_held()?;
    let text = format!("order {order} is charged\n");
    drop(lock);
    Ok(text)
}

/// Why an order was not charged, for the log of the service and for the client.
fn refusal(error: &Error) -> (StatusCode, String) {
    say(&format!("   {error}"));
    let text = "no lock now; try again\n".to_owned();
    (StatusCode::SERVICE_UNAVAILABLE, text)
}

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(3)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    // The service, and a program on another machine that holds the lock of an order.
    let client = LockClient::new(urls)?;
    let other = LockClient::new(urls)?;
    // With the process number, so that several of these programs may run at a time.
    let order = std::process::id().to_string();
    let held = other
        .request(format!("orders:{order}"))
        .keep_alive()
        .lock()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let service = Router::new().route("/orders/{order}/charge", post(charge));
        tokio::spawn(axum::serve(listener, service.with_state(client)).into_future());
        let hung_up = request(address, &order).await?;
        await_waiters(&other, &order, 1).await?;
        say("A request waits for the lock of its order.");
        drop(hung_up);
        await_waiters(&other, &order, 0).await?;
        say("Its client has hung up, and nobody waits any more.");
        let mut patient = request(address, &order).await?;
        await_waiters(&other, &order, 1).await?;
        spawn_blocking(|| held.release()).await??;
        let mut answer = String::new();
        patient.read_to_string(&mut answer).await?;
        let text = answer.lines().last().unwrap_or_default();
        say(&format!(
            "The next one is answered when the lock is free: {text}."
        ));
        let is_charged = answer.starts_with("HTTP/1.1 200 ") && text.ends_with("is charged");
        if is_charged {
            Ok(())
        } else {
            Err(format!("the answer is {answer}").into())
        }
    })
}

/// Sends a request, and does not wait for the answer.
async fn request(address: SocketAddr, order: &str) -> Result<TcpStream, Failure> {
    let mut connection = TcpStream::connect(address).await?;
    let head = format!(
        "POST /orders/{order}/charge HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: 0\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await?;
    Ok(connection)
}

/// Waits until so many clients wait for the lock of the order.
async fn await_waiters(client: &LockClient, order: &str, count: usize) -> Result<(), Failure> {
    loop {
        let client = client.clone();
        let name = format!("orders:{order}");
        if spawn_blocking(move || client.inspect(name))
            .await??
            .waiter_count
            == count
        {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
