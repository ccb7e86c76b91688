//! Looking at a lock.

use super::LockClient;
use crate::clock;
use crate::core::{Backend, Redlock};
use crate::engine::{Action, Request, Said};
use crate::error::{Error, NoQuorum};
use crate::inspect::Inspection;
use redlatch_protocol::inspect::{KeySnapshot, Look};
use std::sync::Arc;

impl LockClient {
    /// Looks at what the nodes hold for `resource`, without locking it: free, held or shared, for
    /// how much longer, by whom if the request [named an owner](crate::LockRequest::owner), and who
    /// waits for it in the nodes' queue.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient, LockState};
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let seen = client.inspect("orders:42")?;
    /// match seen.state {
    ///     LockState::Free => eprintln!("free"),
    ///     LockState::Held(holder) => eprintln!("held for another {:?}", holder.remaining),
    ///     other => eprintln!("{other:?}"),
    /// }
    /// for waiter in &seen.waiters {
    ///     let owner = waiter.owner().map(|name| name.to_string());
    ///     eprintln!("{} waits", owner.unwrap_or("an unknown owner".to_owned()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It takes as long as the slowest node, up to [`node_timeout`](crate::Builder::node_timeout),
    /// or longer in a new client, as [`nodes`](Self::nodes) does.
    ///
    /// # Errors
    ///
    /// The resource's name cannot be used, or fewer nodes than a majority answered.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Inspection, Error> {
        let key = self.key(resource.as_ref()).map_err(Error::Resource)?;
        self.inspect_key(key)
    }

    pub(super) fn inspect_key(&self, key: Arc<[u8]>) -> Result<Inspection, Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        match &self.core.backend {
            Backend::Redlock(redlock) => self.inspect_nodes(redlock, key),
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) => match ensemble.look(&key) {
                Ok((url, view)) => Ok(Inspection::of_ensemble(key, url, &view)),
                Err(error) => Err(Error::NoQuorum(error)),
            },
        }
    }

    fn inspect_nodes(&self, redlock: &Redlock, key: Arc<[u8]>) -> Result<Inspection, Error> {
        let action = Action::Custom(Arc::new(Look { key: Arc::clone(&key) }));
        let request = Request::to_all(&self.core.rules, clock::now(), action);
        let (said, reports) = redlock.net.submit(request).into_said();
        let snapshot = |said: &Option<Said>| said.as_ref()?.get::<KeySnapshot>().cloned();
        let snapshots: Vec<_> = said.iter().map(snapshot).collect();
        Inspection::of(key, &snapshots, reports)
            .map_err(|reports| Error::NoQuorum(NoQuorum::new(reports)))
    }
}
