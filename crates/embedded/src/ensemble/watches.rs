//! Watches: who is to be told of the next change of a znode, once.

use std::collections::{BTreeSet, HashMap};

/// What happened to a znode. The numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    Created = 1,
    Deleted = 2,
    DataChanged = 3,
    ChildrenChanged = 4,
}

/// What happened, and to which znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    pub(super) path: Box<str>,
}

impl Event {
    pub(super) fn new(kind: EventKind, path: &str) -> Self {
        Self { kind, path: path.into() }
    }
}

/// The watches of all connections. `C` identifies a connection.
#[derive(Debug)]
pub(super) struct Watches<C> {
    /// On a znode itself, or on its creation.
    znodes: Table<C>,
    /// On the list of its children.
    children: Table<C>,
}

type Table<C> = HashMap<Box<str>, BTreeSet<C>>;

impl<C: Copy + Ord> Watches<C> {
    pub(super) fn new() -> Self {
        Self { znodes: HashMap::new(), children: HashMap::new() }
    }

    pub(super) fn watch_znode(&mut self, path: &str, connection: C) {
        self.znodes.entry(path.into()).or_default().insert(connection);
    }

    pub(super) fn watch_children(&mut self, path: &str, connection: C) {
        self.children.entry(path.into()).or_default().insert(connection);
    }

    /// The connections to tell of this event, each once. Their watches have ended.
    pub(super) fn trigger(&mut self, event: &Event) -> BTreeSet<C> {
        let path = &*event.path;
        match event.kind {
            EventKind::Created | EventKind::DataChanged => {
                self.znodes.remove(path).unwrap_or_default()
            }
            EventKind::Deleted => {
                let mut told = self.znodes.remove(path).unwrap_or_default();
                told.extend(self.children.remove(path).unwrap_or_default());
                told
            }
            EventKind::ChildrenChanged => self.children.remove(path).unwrap_or_default(),
        }
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, connection: C) {
        for table in [&mut self.znodes, &mut self.children] {
            table.retain(|_, connections| {
                connections.remove(&connection);
                !connections.is_empty()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_told_of_one_event() {
        let mut watches = Watches::new();
        let mut trigger = |kind, watch: &dyn Fn(&mut Watches<u8>)| {
            watch(&mut watches);
            watches.trigger(&Event::new(kind, "/a")).into_iter().collect::<Vec<_>>()
        };
        let nothing = |_: &mut Watches<u8>| {};
        let both = |watches: &mut Watches<u8>| {
            watches.watch_znode("/a", 1);
            watches.watch_children("/a", 1);
            watches.watch_children("/a", 2);
        };
        assert_eq!(trigger(EventKind::DataChanged, &both), [1]);
        assert_eq!(trigger(EventKind::DataChanged, &nothing), []);
        assert_eq!(trigger(EventKind::ChildrenChanged, &nothing), [1, 2]);
        assert_eq!(trigger(EventKind::Deleted, &both), [1, 2]);
        assert_eq!(trigger(EventKind::Deleted, &nothing), []);
        both(&mut watches);
        watches.forget(1);
        assert_eq!(watches.trigger(&Event::new(EventKind::Created, "/a")).len(), 0);
        assert_eq!(watches.trigger(&Event::new(EventKind::Deleted, "/a")).len(), 1);
    }
}
