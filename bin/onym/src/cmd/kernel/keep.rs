//! `onym cs keep`: the second level of the kernel's content store, on a disk.

use super::failure;
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{human, stop};
use onym_forward::stage::stays_near;
use onym_frame::Buf;
use onym_kernel::KernelError;
use onym_kernel::store::{Event, StoreSocket};
use onym_store::{Filter, Found, Level, ShelfOptions};
use onym_wire::{Data, Interest};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Where it is, and how much there may be.
#[derive(Debug, clap::Args)]
pub(crate) struct KeepArgs {
    /// Folder of the packets, which are found again after a restart.
    folder: PathBuf,
    /// Octets of its log, beside which the index takes about a twentieth more.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, default_value = "10G")]
    bytes_max: u64,
    /// Packets; each takes 8 octets of memory, whether it is there or not.
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    packets_max: u64,
    /// Nothing is written while less is free on the disk.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, default_value = "1G")]
    free_min: u64,
    /// Every Data comes here at once, and none stays in the kernel's memory.
    #[arg(long)]
    everything: bool,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { folder: String, packets: u64 },
    Trouble { text: String },
    Well,
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { folder, packets } => {
            format!("{folder}\nready: {}\n", human::count(*packets, "packet"))
        }
        Line::Trouble { text } => format!("trouble: {text}\n"),
        Line::Well => "the trouble is over\n".to_owned(),
    }
}

/// `onym cs keep --kernel`.
pub(crate) fn cs_keep(cx: &Context, args: KeepArgs) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let folder = args.folder.display().to_string();
    let socket = StoreSocket::attach().map_err(failure)?;
    let options = options(&args);
    let mut keeper = Keeper::open(args.folder, options, socket)?;
    let packets = keeper.announce().map_err(failure)?;
    // A connection of its own: what the kernel says to the store is not lost behind its answers.
    let mut control = super::open()?;
    control.set_in_user(args.everything).map_err(failure)?;
    cx.event(&Line::Ready { folder, packets }, text)?;
    let mut trouble = None;
    let ended = loop {
        if stop.is_set() {
            break Ok(());
        }
        if let Err(error) = keeper.step() {
            break Err(failure(error));
        }
        let now = keeper.level.gauge().stats().trouble;
        if now != trouble {
            let line = now.clone().map_or(Line::Well, |text| Line::Trouble { text });
            cx.event(&line, text)?;
            trouble = now;
        }
    };
    control.set_in_user(false).map_err(failure)?;
    ended
}

fn options(args: &KeepArgs) -> ShelfOptions {
    ShelfOptions {
        octets_max: args.bytes_max,
        packets_max: args.packets_max,
        free_min_octets: args.free_min,
    }
}

/// What is between the kernel and the disk.
struct Keeper {
    socket: StoreSocket,
    filter: Arc<Filter>,
    level: Level,
}

impl Keeper {
    fn open(folder: PathBuf, options: ShelfOptions, socket: StoreSocket) -> anyhow::Result<Self> {
        let filter = Arc::new(Filter::new(options.packets_max));
        let mut level = Level::new(folder, options, Arc::clone(&filter));
        if !level.open() {
            let why = level.gauge().stats().trouble.unwrap_or_default();
            return Err(Failure::new(Exit::Failed, "the folder cannot be opened")
                .why(why)
                .next("give a folder that may be written, and that no other program uses")
                .into());
        }
        Ok(Self { socket, filter, level })
    }

    /// Has the kernel ask for what is there from before; how many packets that are.
    fn announce(&mut self) -> Result<u64, KernelError> {
        let (mut packets, mut failed) = (0, None);
        self.level.each_name(|name| {
            packets += 1;
            failed = self.socket.have(name).err().or(failed.take());
        });
        failed.map_or(Ok(packets), Err)
    }

    /// Takes and answers what the kernel says, and writes.
    fn step(&mut self) -> Result<(), KernelError> {
        let mut came = Vec::new();
        self.socket.receive(self.level.patience(), |event| came.push(event))?;
        for event in came {
            match event {
                Event::Offer { packet, fresh_ms } => self.keep(&packet, fresh_ms),
                Event::Ask(interest) => match self.find(&interest) {
                    Some(found) => self.socket.answer(&found.packet)?,
                    None => self.socket.miss(&interest)?,
                },
            }
        }
        self.level.tend();
        Ok(())
    }

    /// What belongs to this host or link only stays in memory.
    fn keep(&mut self, packet: &[u8], fresh_ms: u64) {
        if Data::parse(packet).is_ok_and(|data| !stays_near(data.name.value())) {
            self.level.keep(Found { packet: Buf::copy_from(packet), fresh_ms });
        }
    }

    fn find(&mut self, interest: &[u8]) -> Option<Found> {
        let interest = Interest::parse(interest).ok()?;
        self.filter.may_answer(&interest).then(|| self.level.find(&interest)).flatten()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_kernel::generated::{attr, cmd};
    use onym_kernel::netlink::{Answer, Request, events};
    use onym_wire::interest::InterestBuilder;
    use onym_wire::{DataBuilder, Name};
    use rustix::fd::OwnedFd;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    use std::path::Path;
    use std::time::{Duration, Instant};

    const FAMILY: u16 = 30;

    /// The kernel, as a store sees it.
    struct Kernel(OwnedFd);

    impl Kernel {
        fn says(&self, request: Request) {
            rustix::net::send(&self.0, &request.unanswered(FAMILY), SendFlags::empty()).unwrap();
        }

        fn offers(&self, packet: &[u8], fresh_ms: u32) {
            self.says(
                Request::new(cmd::STORE_OFFER)
                    .put(attr::PACKET, packet)
                    .put(attr::LIFETIME, &fresh_ms.to_ne_bytes()),
            );
        }

        fn asks(&self, name: &str, must_be_fresh: bool) -> Vec<u8> {
            let (name, mut packet) = (name.parse::<Name>().unwrap(), Vec::new());
            InterestBuilder { must_be_fresh, ..InterestBuilder::new(name.as_ref()) }
                .write(&mut packet);
            self.says(Request::new(cmd::STORE_ASK).put(attr::PACKET, &packet));
            packet
        }

        fn hears(&self) -> Vec<(u8, Answer)> {
            let mut room = vec![0; 16 << 10];
            let flags = RecvFlags::DONTWAIT;
            match rustix::net::recv(&self.0, room.as_mut_slice(), flags) {
                Ok((len, _)) => events(&room[..len], FAMILY).collect(),
                Err(_) => Vec::new(),
            }
        }

        /// The one thing that it hears.
        fn hears_one(&self) -> (u8, Answer) {
            let mut heard = self.hears();
            assert_eq!(heard.len(), 1);
            heard.remove(0)
        }
    }

    fn set_up(place: &Path, octets_max: u64) -> (Kernel, Keeper) {
        let flags = SocketFlags::CLOEXEC;
        let kind = SocketType::SEQPACKET;
        let (near, far) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        let options = ShelfOptions { octets_max, packets_max: 1000, free_min_octets: 0 };
        let socket = StoreSocket::over(near, FAMILY);
        (Kernel(far), Keeper::open(place.to_owned(), options, socket).unwrap())
    }

    fn data(name: &str, content: &[u8]) -> Vec<u8> {
        let (name, mut packet) = (name.parse::<Name>().unwrap(), Vec::new());
        let builder =
            DataBuilder { freshness_ms: 60_000, ..DataBuilder::new(name.as_ref(), content) };
        onym_crypto::signer::write_digest_data(&builder, &mut packet);
        packet
    }

    fn until(keeper: &mut Keeper, is_so: impl Fn(&Keeper) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is_so(keeper) {
            assert!(Instant::now() < end, "{:?}", keeper.level.gauge().stats());
            keeper.step().unwrap();
        }
    }

    fn kept(keeper: &Keeper) -> u64 {
        keeper.level.gauge().stats().kept
    }

    /// Law: what the kernel's memory forgot is answered from the disk, fresh for as long as it still
    /// was, also by the next process; what is not there is said not to be.
    #[test]
    fn what_the_kernel_forgets_is_answered_from_the_disk_also_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let (kernel, mut keeper) = set_up(place.path(), 1 << 24);
        let (fresh, stale) = (data("/a/fresh", b"1"), data("/a/stale", b"2"));
        kernel.offers(&fresh, 60_000);
        kernel.offers(&stale, 0);
        kernel.offers(&data("/localhost/a", b"3"), 60_000);
        kernel.offers(b"no packet", 60_000);
        until(&mut keeper, |k| kept(k) == 2);
        let check = |kernel: &Kernel, keeper: &mut Keeper| {
            for (name, must_be_fresh, answer) in [
                ("/a/fresh", true, Some(&fresh)),
                ("/a/stale", false, Some(&stale)),
                ("/a/stale", true, None),
                ("/localhost/a", false, None),
                ("/a/other", false, None),
            ] {
                let interest = kernel.asks(name, must_be_fresh);
                keeper.step().unwrap();
                let (command, said) = kernel.hears_one();
                let expected = match answer {
                    Some(packet) => (cmd::STORE_DATA, packet),
                    None => (cmd::STORE_MISS, &interest),
                };
                assert_eq!(
                    (command, said.bytes(attr::PACKET)),
                    (expected.0, Some(&expected.1[..]))
                );
            }
        };
        check(&kernel, &mut keeper);
        drop(keeper);
        let (kernel, mut keeper) = set_up(place.path(), 1 << 24);
        assert_eq!(keeper.announce().unwrap(), 2);
        let names: Vec<Vec<u8>> = (0..2)
            .map(|_| {
                let (command, said) = kernel.hears_one();
                assert_eq!(command, cmd::STORE_HAVE);
                said.bytes(attr::NAME).unwrap().to_vec()
            })
            .collect();
        assert_eq!(
            names,
            ["/a/fresh", "/a/stale"].map(|n| n.parse::<Name>().unwrap().as_ref().value().to_vec())
        );
        check(&kernel, &mut keeper);
    }

    /// Law: the disk takes no more than it may; what is oldest gives way.
    #[test]
    fn a_full_disk_has_what_came_last() {
        let place = tempfile::tempdir().unwrap();
        let bound = 1 << 20;
        let (kernel, mut keeper) = set_up(place.path(), bound);
        let content = vec![7; 8000];
        for n in 0..200 {
            kernel.offers(&data(&format!("/full/{n}"), &content), 60_000);
            until(&mut keeper, |k| n % 10 != 9 || kept(k) == n + 1);
        }
        let stats = keeper.level.gauge().stats();
        assert!(stats.gone > 50, "{stats:?}");
        let logs = std::fs::read_dir(place.path()).unwrap().map(Result::unwrap);
        let logs = logs.filter(|e| e.path().extension().is_some_and(|e| e == "log"));
        let octets: u64 = logs.map(|e| e.metadata().unwrap().len()).sum();
        assert!(octets <= bound, "{octets}");
        for (name, command) in [("/full/0", cmd::STORE_MISS), ("/full/199", cmd::STORE_DATA)] {
            kernel.asks(name, false);
            keeper.step().unwrap();
            assert_eq!(kernel.hears_one().0, command, "{name}");
        }
    }
}
