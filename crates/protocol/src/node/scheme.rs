//! Schemes of URLs: the one list of them, and what each says about a node.

/// What a node is, as its URL says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeKind {
    /// A server of its own.
    Server,
    /// A replicated group, or a part of one: failovers give it another master.
    Group,
    /// A server of a ZooKeeper ensemble, or all of them.
    Ensemble,
}

impl NodeKind {
    /// What a node with this URL is; `None` if the text begins with no scheme of a node. Of the
    /// rest only what decides is looked at.
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = Scheme::split(url)?;
        Some(match scheme.place {
            SchemePlace::Sentinels | SchemePlace::Cluster => Self::Group,
            SchemePlace::Ensemble => Self::Ensemble,
            SchemePlace::Host if moves(rest) => Self::Group,
            SchemePlace::Host | SchemePlace::Path => Self::Server,
        })
    }
}

/// Is the host of this URL a name that moves to another server?
fn moves(rest: &str) -> bool {
    let options = rest.split_once('?').map_or("", |(_, options)| options);
    options.split('&').any(|option| option == "failover=true")
}

/// What the scheme of a URL says.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    pub place: SchemePlace,
    pub is_tls: bool,
}

/// What stands behind the `://`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemePlace {
    Host,
    Path,
    Sentinels,
    Cluster,
    Ensemble,
}

const SCHEMES: [(&str, SchemePlace, bool); 19] = [
    ("redis", SchemePlace::Host, false),
    ("valkey", SchemePlace::Host, false),
    ("rediss", SchemePlace::Host, true),
    ("valkeys", SchemePlace::Host, true),
    ("unix", SchemePlace::Path, false),
    ("redis+sentinel", SchemePlace::Sentinels, false),
    ("valkey+sentinel", SchemePlace::Sentinels, false),
    ("redis-sentinel", SchemePlace::Sentinels, false),
    ("rediss+sentinel", SchemePlace::Sentinels, true),
    ("valkeys+sentinel", SchemePlace::Sentinels, true),
    ("rediss-sentinel", SchemePlace::Sentinels, true),
    ("redis+cluster", SchemePlace::Cluster, false),
    ("valkey+cluster", SchemePlace::Cluster, false),
    ("redis-cluster", SchemePlace::Cluster, false),
    ("rediss+cluster", SchemePlace::Cluster, true),
    ("valkeys+cluster", SchemePlace::Cluster, true),
    ("rediss-cluster", SchemePlace::Cluster, true),
    ("zk", SchemePlace::Ensemble, false),
    ("zks", SchemePlace::Ensemble, true),
];

impl Scheme {
    /// The scheme with which this text begins, in whatever case, and what follows its `://`.
    #[must_use]
    pub fn split(url: &str) -> Option<(Self, &str)> {
        let (name, rest) = url.split_once("://")?;
        let known = SCHEMES
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(name));
        known.map(|(_, place, is_tls)| {
            (
                Self {
                    place: *place,
                    is_tls: *is_tls,
                },
                rest,
            )
        })
    }

    /// May URLs with this scheme name several hosts, between commas?
    #[must_use]
    pub fn takes_hosts(self) -> bool {
        match self.place {
            SchemePlace::Host | SchemePlace::Path => false,
            SchemePlace::Sentinels | SchemePlace::Cluster | SchemePlace::Ensemble => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_what_its_node_is() {
        for (url, kind) in [
            ("redis://h:6379/0", NodeKind::Server),
            ("VALKEYS://u:***@h:6379/0?server_name=x", NodeKind::Server),
            ("redis://h?failover=true", NodeKind::Group),
            (
                "rediss://h:6379/0?server_name=x&failover=true&replicas=1",
                NodeKind::Group,
            ),
            ("redis://h?failover=false", NodeKind::Server),
            ("redis+sentinel://s:26379/name/0", NodeKind::Group),
            ("rediss-cluster://h:6379?slots=0", NodeKind::Group),
            ("ZK://h1,h2/locks", NodeKind::Ensemble),
            ("zks://h1", NodeKind::Ensemble),
            // What only looks like it.
            (
                "unix:///run/failover=true/redis.sock?db=0",
                NodeKind::Server,
            ),
            ("unix:///zk:/a?db=0", NodeKind::Server),
            ("redis://failover=true:6379/0", NodeKind::Server),
        ] {
            assert_eq!(NodeKind::of(url), Some(kind), "{url}");
        }
        for text in ["", "h:6379", "http://h", "redis", "redis+zk://h", "://h"] {
            assert_eq!(NodeKind::of(text), None, "{text}");
        }
    }

    #[test]
    fn each_scheme_stands_in_the_list_once_and_its_secure_one_beside_it() {
        for (index, (name, place, is_tls)) in SCHEMES.iter().enumerate() {
            assert!(
                SCHEMES[index + 1..].iter().all(|(other, ..)| other != name),
                "{name}"
            );
            let secure = SCHEMES
                .iter()
                .any(|(_, other, is_tls)| other == place && *is_tls);
            assert!(secure || *place == SchemePlace::Path, "{name}");
            assert_eq!(
                Scheme::split(&format!("{name}://a")).unwrap().0.is_tls,
                *is_tls
            );
        }
    }
}
