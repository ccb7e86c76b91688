//! How a call of a simulated thread waits: it has the methods of the library's caller, that of a
//! thread that blocks (`src/registers/register/caller.rs`).

use super::nodes::{RegisterNodes, RegisterRound};
use super::{Register, Thread};
use crate::backend::RegisterMemory;
use crate::clock;
use crate::error::RegisterError;
use crate::redlock::NodesCaller;
use crossbeam_channel::{Receiver, RecvError, TryRecvError};
use redlatch_protocol::engine::{Command, Node, NodeSet, Request};
use redlatch_protocol::inspect::{KeyPage, Listing};
use redlatch_protocol::node::{NodeReport, NodeStatus};
use redlatch_registers::{RegisterKeys, RegisterRequest};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// About how many keys a server looks at in one step of a list, and how often it is asked for one.
const STEP: u32 = 500;
const TRIES: u32 = 3;

/// How long it takes before a participant changes its disk, and again behind that.
const WRITE: Duration = Duration::from_millis(1);

#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(super) thread: &'a Thread,
}

impl<'a> Caller<'a> {
    pub(crate) fn memory(self) -> &'a RegisterMemory {
        &self.thread.shared.memory
    }

    pub(super) async fn ask(self, request: RegisterRequest, nodes: NodeSet) -> RegisterRound {
        let asked = Request {
            nodes,
            ..self.about(request.clone())
        };
        let outcome = self.thread.line.submit(asked).await;
        RegisterRound::of(self.answer_by_mistake(&request, outcome))
    }

    pub(crate) fn tell(self, request: RegisterRequest) {
        self.thread.line.post(self.about(request));
    }

    fn about(self, request: RegisterRequest) -> Request {
        let command = Command::Custom(Arc::new(request));
        Request::to_all(&self.thread.shared.core.rules, clock::now(), command)
    }

    pub(crate) async fn servers(self, nodes: NodeSet) -> Vec<NodeStatus> {
        let request = Request {
            nodes,
            ..Request::examination(&self.thread.shared.core.rules, clock::now())
        };
        self.thread.line.submit(request).await.statuses
    }

    pub(crate) async fn names(self, node: Node) -> Result<Vec<Arc<[u8]>>, NodeReport> {
        let prefix = &self.thread.shared.core.key_prefix[..];
        let pattern: Arc<[u8]> = Arc::from([prefix, RegisterKeys::PROMISE, b"*"].concat());
        let mut names = Vec::new();
        let mut cursor = 0;
        let mut tries = 0;
        loop {
            let scan = Listing {
                pattern: pattern.clone(),
                cursor,
                count: STEP,
                registers: true,
                tag: Arc::default(),
            };
            let scan = Command::Custom(Arc::new(scan));
            let rules = &self.thread.shared.core.rules;
            let request = Request::to_one(rules, clock::now(), node, scan);
            let mut outcome = self.thread.line.submit(request).await;
            tries += 1;
            let said = outcome.said[node.index()].as_ref();
            let Some(page) = said.and_then(|said| said.get::<KeyPage>()) else {
                if tries == TRIES {
                    return Err(outcome.reports.swap_remove(node.index()));
                }
                continue;
            };
            for key in page.keys.as_ref().expect("the names are few") {
                let key = key.strip_prefix(prefix);
                let name = key.and_then(|key| key.strip_prefix(RegisterKeys::PROMISE));
                names.extend(name.map(Arc::from));
            }
            cursor = page.next;
            tries = 0;
            if cursor == 0 {
                return Ok(names);
            }
        }
    }

    pub(crate) async fn receive<T: 'static>(self, messages: &Receiver<T>) -> Result<T, RecvError> {
        let Thread {
            shared,
            line,
            worker,
        } = self.thread;
        poll_fn(|_| match messages.try_recv() {
            Ok(message) => Poll::Ready(Ok(message)),
            Err(TryRecvError::Disconnected) => Poll::Ready(Err(RecvError)),
            Err(TryRecvError::Empty) => {
                shared.await_message(*worker, messages.clone());
                line.await_message();
                Poll::Pending
            }
        })
        .await
    }

    pub(crate) async fn act<T>(self, step: impl FnOnce() -> T) -> T {
        self.vote_by_mistake().await;
        // The process may die before or behind it.
        self.pause(WRITE).await;
        let result = step();
        self.pause(WRITE).await;
        result
    }

    pub(crate) async fn pause(self, delay: Duration) {
        self.thread.line.sleep(clock::now().after(delay)).await;
    }
}

impl Register {
    pub(crate) fn nodes(&self) -> Result<RegisterNodes<'_>, RegisterError> {
        Ok(RegisterNodes {
            core: &self.thread.shared.core,
            caller: self.thread.caller(),
        })
    }
}
