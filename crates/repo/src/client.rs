//! The client of a repository: gives it a command, and asks how far it is.

use crate::admission::Act;
use crate::command::{self, Notify, ObjectParam, ObjectResult};
use onym_client::blocking::Client;
use onym_client::producer::{Answer, Incoming};
use onym_client::{Error, Request, RouteOptions};
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_crypto::signer::Signer;
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use std::time::Duration;

/// A command that a repository has.
#[derive(Debug)]
pub struct Commanded {
    check: Name,
    number: [u8; 32],
}

fn word(act: Act) -> &'static str {
    if act == Act::Insert { "insert" } else { "delete" }
}

/// Gives `objects` to the repository `repo`: publishes the command under `publisher`, signed by
/// `signer` with the present time, and waits until the repository has fetched it.
///
/// # Errors
/// [`Error::Sign`]; [`Error::NotRegistered`] for the publisher's prefix; [`Error::Unanswered`] when the repository
/// does not fetch the command.
pub fn command(
    client: &mut Client,
    repo: &Name,
    act: Act,
    objects: &[ObjectParam],
    publisher: Name,
    signer: &Signer,
) -> Result<Commanded, Error> {
    let content = command::write_objects(objects);
    let number = command::request_no(&content);
    let notify = Notify {
        publisher: publisher.clone(),
        nonce: random_u64().to_be_bytes().to_vec(),
        hint: Vec::new(),
    };
    let topic = repo.clone().with(onym_wire::Component::generic(word(act).as_bytes()));
    let message = notify.message_name(topic.as_ref());
    // Signed once: the repository takes each signature for a command of its own.
    let mut packet = Vec::new();
    let info = SignatureInfo { time: Some(unix_now_ms()), ..signer.info() };
    let data = DataBuilder::new(message.as_ref(), &content);
    data.write(&mut packet, &info, |signed| signer.sign(&[signed])).map_err(Error::Sign)?;
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        if !incoming.is_answered_by(&packet) {
            return Answer::Nothing;
        }
        out.extend_from_slice(&packet);
        Answer::Written
    };
    let mut prefix = publisher.clone();
    prefix.append_generic("msg");
    let responder = client.respond(prefix.clone(), Box::new(respond))?;
    client.register(prefix, RouteOptions::default())?;
    let mut name = topic;
    name.append_generic("notify");
    let request = Request { parameters: Some(notify.write()), retries: 2, ..Request::new(name) };
    let done = client.request(&request);
    client.endpoint().respond_stop(responder);
    done?;
    let mut check = repo.clone();
    check.append_generic(format!("{} check", word(act)));
    Ok(Commanded { check, number })
}

/// How far a command is.
///
/// # Errors
/// [`Error::Unanswered`]; an answer that cannot be read counts as malformed (403).
pub fn check(
    client: &mut Client,
    commanded: &Commanded,
) -> Result<(u64, Vec<ObjectResult>), Error> {
    let request = Request {
        parameters: Some(command::write_query(&commanded.number)),
        must_be_fresh: true,
        lifetime: Duration::from_secs(1),
        retries: 3,
        ..Request::new(commanded.check.clone())
    };
    let packet = client.request(&request)?;
    Ok(command::parse_result(packet.data().content).unwrap_or((command::REFUSED, Vec::new())))
}

/// Serves and asks until the command ended; `tell` gets every state, and ends it with `false`.
///
/// # Errors
/// Those of [`check`].
pub fn wait(
    client: &mut Client,
    commanded: &Commanded,
    tell: &mut dyn FnMut(u64, &[ObjectResult]) -> bool,
) -> Result<(u64, Vec<ObjectResult>), Error> {
    loop {
        let (status, objects) = check(client, commanded)?;
        let goes_on = tell(status, &objects);
        if !goes_on || !matches!(status, command::QUEUED | command::RUNNING) {
            return Ok((status, objects));
        }
        // An answer is fresh for a second; meanwhile what was announced is served.
        let until = std::time::Instant::now() + Duration::from_millis(1100);
        client.run(
            Duration::from_millis(100),
            &mut || std::time::Instant::now() >= until,
            &mut |_| {},
        )?;
    }
}
