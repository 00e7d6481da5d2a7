//! Faces, routes, content store and counters of the kernel stack.

use crate::KernelError;
use crate::generated::{attr, cmd, face_kind, strategy};
use crate::netlink::{Answer, Netlink, Request};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// What a face stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// The entrance to the applications.
    Local,
    /// A socket.
    Socket,
    /// A station or group behind a device, by its index.
    Ether {
        /// Index of the device.
        ifindex: u32,
        /// Address of the station or group.
        mac: [u8; 6],
    },
    /// A UDP peer.
    Udp(SocketAddr),
}

/// A face with its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Face {
    /// Its number.
    pub id: u32,
    /// What it stands for.
    pub peer: Peer,
    /// Largest frame; 0 is the link's own.
    pub mtu: u64,
    /// Interests, Data, Nacks, octets that came in.
    pub received: [u64; 4],
    /// Interests, Data, Nacks, octets that went out.
    pub sent: [u64; 4],
}

/// A next hop of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Value of the prefix's Name TLV.
    pub prefix: Vec<u8>,
    /// The face.
    pub face: u32,
    /// Lower is preferred.
    pub cost: u64,
}

/// The content store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cs {
    /// Most packets.
    pub capacity: u64,
    /// Packets now.
    pub packets: u64,
    /// Octets of kernel memory now.
    pub bytes: u64,
    /// Whether packets are put in.
    pub admit: bool,
    /// Whether Interests are answered from it.
    pub serve: bool,
}

/// The table of pending Interests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pit {
    /// Most entries.
    pub capacity: u64,
    /// Entries now.
    pub entries: u64,
    /// Octets of kernel memory now.
    pub bytes: u64,
    /// Most octets.
    pub bytes_max: u64,
}

/// A pending Interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Value of its Name TLV.
    pub name: Vec<u8>,
    /// CanBePrefix.
    pub can_be_prefix: bool,
    /// MustBeFresh.
    pub must_be_fresh: bool,
    /// Faces that wait for it.
    pub downstreams: u64,
    /// Milliseconds until it ends.
    pub lifetime_ms: u64,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// `interest`, `data`, `nack`, `frame` and others.
    pub kind: String,
    /// The word of the registry.
    pub word: String,
    /// How often.
    pub count: u64,
}

fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn array<const N: usize>(bytes: Option<&[u8]>) -> [u8; N] {
    bytes.and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

impl Face {
    fn of(a: &Answer) -> Self {
        let kind = u8::try_from(a.number(attr::FACE_KIND)).unwrap_or(0);
        let peer = match kind {
            face_kind::ETHER => Peer::Ether {
                ifindex: number(a.number(attr::IFINDEX)),
                mac: array(a.bytes(attr::PEER)),
            },
            face_kind::UDP => {
                let address = Ipv6Addr::from(array::<16>(a.bytes(attr::ADDRESS)));
                let port = u16::try_from(a.number(attr::PORT)).unwrap_or(0);
                Peer::Udp(SocketAddr::new(IpAddr::V6(address).to_canonical(), port))
            }
            face_kind::SOCKET => Peer::Socket,
            _ => Peer::Local,
        };
        let four = |kinds: [u16; 4]| kinds.map(|k| a.number(k));
        Self {
            id: number(a.number(attr::FACE_ID)),
            peer,
            mtu: a.number(attr::MTU),
            received: four([attr::IN_INTERESTS, attr::IN_DATA, attr::IN_NACKS, attr::IN_BYTES]),
            sent: four([attr::OUT_INTERESTS, attr::OUT_DATA, attr::OUT_NACKS, attr::OUT_BYTES]),
        }
    }
}

/// Control over the stack of this network namespace.
#[derive(Debug)]
pub struct Control {
    netlink: Netlink,
}

impl Control {
    /// Opens a connection.
    ///
    /// # Errors
    /// [`KernelError::Absent`] without the module.
    pub fn open() -> Result<Self, KernelError> {
        Ok(Self { netlink: Netlink::open()? })
    }

    /// All faces.
    ///
    /// # Errors
    /// As the kernel gave it; so with the other calls.
    pub fn faces(&mut self) -> Result<Vec<Face>, KernelError> {
        Ok(self.netlink.dump(cmd::FACE_GET)?.iter().map(Face::of).collect())
    }

    fn face_new(&mut self, request: Request) -> Result<u32, KernelError> {
        let answers = self.netlink.call(request)?;
        answers.first().map(|a| number(a.number(attr::FACE_ID))).ok_or(KernelError::Malformed)
    }

    /// Makes a face to a UDP peer, or finds it.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn udp_face(&mut self, peer: SocketAddr, mtu: u16) -> Result<u32, KernelError> {
        let address = match peer.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        self.face_new(
            Request::new(cmd::FACE_NEW)
                .put(attr::FACE_KIND, &[face_kind::UDP])
                .put(attr::ADDRESS, &address.octets())
                .put(attr::PORT, &peer.port().to_ne_bytes())
                .put(attr::MTU, &mtu.to_ne_bytes()),
        )
    }

    /// Makes a face to a station or group behind a device, or finds it.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn ether_face(&mut self, ifindex: u32, mac: [u8; 6], mtu: u16) -> Result<u32, KernelError> {
        self.face_new(
            Request::new(cmd::FACE_NEW)
                .put(attr::FACE_KIND, &[face_kind::ETHER])
                .put(attr::IFINDEX, &ifindex.to_ne_bytes())
                .put(attr::PEER, &mac)
                .put(attr::MTU, &mtu.to_ne_bytes()),
        )
    }

    fn done(&mut self, request: Request) -> Result<(), KernelError> {
        self.netlink.call(request).map(drop)
    }

    /// Changes the largest frame of a face, and whether it has local fields.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn set_face(
        &mut self,
        face: u32,
        mtu: Option<u16>,
        local_fields: Option<bool>,
    ) -> Result<(), KernelError> {
        let mut request = Request::new(cmd::FACE_SET).put(attr::FACE_ID, &face.to_ne_bytes());
        if let Some(mtu) = mtu {
            request = request.put(attr::MTU, &mtu.to_ne_bytes());
        }
        if let Some(on) = local_fields {
            request = request.put(attr::LOCAL_FIELDS, &[u8::from(on)]);
        }
        self.done(request)
    }

    /// Ends a face.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn delete_face(&mut self, face: u32) -> Result<(), KernelError> {
        self.done(Request::new(cmd::FACE_DEL).put(attr::FACE_ID, &face.to_ne_bytes()))
    }

    /// All next hops.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn routes(&mut self) -> Result<Vec<Route>, KernelError> {
        let rows = self.netlink.dump(cmd::FIB_GET)?;
        let route = |a: &Answer| {
            a.bytes(attr::FACE_ID).map(|_| Route {
                prefix: a.bytes(attr::NAME).unwrap_or_default().to_vec(),
                face: number(a.number(attr::FACE_ID)),
                cost: a.number(attr::COST),
            })
        };
        Ok(rows.iter().filter_map(route).collect())
    }

    /// Adds a next hop; `prefix` is the value of a Name TLV.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn add_route(&mut self, prefix: &[u8], face: u32, cost: u32) -> Result<(), KernelError> {
        self.done(
            Request::new(cmd::FIB_ADD)
                .put(attr::NAME, prefix)
                .put(attr::FACE_ID, &face.to_ne_bytes())
                .put(attr::COST, &cost.to_ne_bytes()),
        )
    }

    /// Takes a next hop away.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn remove_route(&mut self, prefix: &[u8], face: u32) -> Result<(), KernelError> {
        self.done(
            Request::new(cmd::FIB_DEL)
                .put(attr::NAME, prefix)
                .put(attr::FACE_ID, &face.to_ne_bytes()),
        )
    }

    /// Chooses a strategy by its word; `None` takes the choice back.
    ///
    /// # Errors
    /// [`KernelError::Malformed`] for a word that the kernel does not know.
    pub fn set_strategy(&mut self, prefix: &[u8], word: Option<&str>) -> Result<(), KernelError> {
        let value = match word {
            None => 0,
            Some("best-route") => strategy::BEST_ROUTE,
            Some("multicast") => strategy::MULTICAST,
            Some("random") => strategy::RANDOM,
            Some(_) => return Err(KernelError::Malformed),
        };
        self.done(
            Request::new(cmd::STRATEGY_SET).put(attr::NAME, prefix).put(attr::STRATEGY, &[value]),
        )
    }

    /// The content store.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn cs(&mut self) -> Result<Cs, KernelError> {
        let answers = self.netlink.call(Request::new(cmd::CS_GET))?;
        let a = answers.first().ok_or(KernelError::Malformed)?;
        Ok(Cs {
            capacity: a.number(attr::CAPACITY),
            packets: a.number(attr::PACKETS),
            bytes: a.number(attr::BYTES),
            admit: a.number(attr::ADMIT) != 0,
            serve: a.number(attr::SERVE) != 0,
        })
    }

    /// Changes the content store; what is `None` stays.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn set_cs(
        &mut self,
        capacity: Option<u32>,
        admit: Option<bool>,
        serve: Option<bool>,
    ) -> Result<(), KernelError> {
        let mut request = Request::new(cmd::CS_CONFIG);
        if let Some(n) = capacity {
            request = request.put(attr::CAPACITY, &n.to_ne_bytes());
        }
        if let Some(on) = admit {
            request = request.put(attr::ADMIT, &[u8::from(on)]);
        }
        if let Some(on) = serve {
            request = request.put(attr::SERVE, &[u8::from(on)]);
        }
        self.done(request)
    }

    /// Whether every Data goes to the store in user space, and none is kept while there is one.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn set_in_user(&mut self, on: bool) -> Result<(), KernelError> {
        self.done(Request::new(cmd::CS_CONFIG).put(attr::IN_USER, &[u8::from(on)]))
    }

    /// Erases up to `most` packets under a prefix; how many went.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn erase(&mut self, prefix: &[u8], most: u32) -> Result<u64, KernelError> {
        let request = Request::new(cmd::CS_ERASE)
            .put(attr::NAME, prefix)
            .put(attr::COUNT, &most.to_ne_bytes());
        Ok(self.netlink.call(request)?.first().map_or(0, |a| a.number(attr::COUNT)))
    }

    /// The table of pending Interests.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn pit(&mut self) -> Result<Pit, KernelError> {
        let answers = self.netlink.call(Request::new(cmd::PIT_INFO))?;
        let a = answers.first().ok_or(KernelError::Malformed)?;
        Ok(Pit {
            capacity: a.number(attr::PIT_MAX),
            entries: a.number(attr::ENTRIES),
            bytes: a.number(attr::BYTES),
            bytes_max: a.number(attr::BYTES_MAX),
        })
    }

    /// Changes the bounds of pending Interests; what is `None` stays.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn set_pit(
        &mut self,
        capacity: Option<u32>,
        bytes_max: Option<u64>,
    ) -> Result<(), KernelError> {
        let mut request = Request::new(cmd::PIT_SET);
        if let Some(n) = capacity {
            request = request.put(attr::PIT_MAX, &n.to_ne_bytes());
        }
        if let Some(n) = bytes_max {
            request = request.put(attr::BYTES_MAX, &n.to_ne_bytes());
        }
        self.done(request)
    }

    /// All pending Interests.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn pending(&mut self) -> Result<Vec<Pending>, KernelError> {
        let row = |a: &Answer| Pending {
            name: a.bytes(attr::NAME).unwrap_or_default().to_vec(),
            can_be_prefix: a.number(attr::FLAGS) & 1 != 0,
            must_be_fresh: a.number(attr::FLAGS) & 2 != 0,
            downstreams: a.number(attr::COUNT),
            lifetime_ms: a.number(attr::LIFETIME),
        };
        Ok(self.netlink.dump(cmd::PIT_GET)?.iter().map(row).collect())
    }

    /// Ends up to `most` pending Interests under a prefix; how many there were.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn end_pending(&mut self, prefix: &[u8], most: u32) -> Result<u64, KernelError> {
        let request = Request::new(cmd::PIT_ERASE)
            .put(attr::NAME, prefix)
            .put(attr::COUNT, &most.to_ne_bytes());
        Ok(self.netlink.call(request)?.first().map_or(0, |a| a.number(attr::COUNT)))
    }

    /// All counters.
    ///
    /// # Errors
    /// As [`Self::faces`].
    pub fn counters(&mut self) -> Result<Vec<Counter>, KernelError> {
        let counter = |a: &Answer| Counter {
            kind: a.text(attr::COUNTER_KIND),
            word: a.text(attr::COUNTER_WORD),
            count: a.number(attr::VALUE),
        };
        Ok(self.netlink.dump(cmd::STATS_GET)?.iter().map(counter).collect())
    }
}
