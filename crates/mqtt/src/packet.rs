//! Packets of MQTT 3.1.1 and 5, as much of them as a broker needs: read and written by `mqtt_proto`.
//!
//! A packet is read from exactly its octets; what its header says of its length is looked at first.

use mqtt_proto::{Pid, QoS, QosPid, TopicName, v3, v5};
use std::sync::Arc;

/// The version that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V3,
    V5,
}

/// Something that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) topic: Arc<str>,
    pub(crate) payload: Arc<[u8]>,
    pub(crate) retain: bool,
}

/// What a client wants when it connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connect {
    pub(crate) version: Version,
    /// Empty: it has no name.
    pub(crate) client: Arc<str>,
    /// It wants none of what it had before.
    pub(crate) is_clean: bool,
    /// Seconds that its session outlives the connection.
    pub(crate) expiry: u32,
    /// Seconds; 0: it may be silent.
    pub(crate) keep_alive: u16,
    pub(crate) will: Option<(Message, Level)>,
    /// Publications that it takes without having acknowledged them.
    pub(crate) receive_max: u16,
    /// Octets of a packet that it takes.
    pub(crate) packet_max: u32,
}

/// How surely a message comes to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Most,
    Least,
    Exactly,
}

impl From<QoS> for Level {
    fn from(of: QoS) -> Self {
        match of {
            QoS::Level0 => Self::Most,
            QoS::Level1 => Self::Least,
            QoS::Level2 => Self::Exactly,
        }
    }
}

/// How often a publication is to come, and the number by which it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quality {
    Most,
    Least(u16),
    Exactly(u16),
}

impl From<Quality> for Level {
    fn from(of: Quality) -> Self {
        match of {
            Quality::Most => Self::Most,
            Quality::Least(_) => Self::Least,
            Quality::Exactly(_) => Self::Exactly,
        }
    }
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Connect(Connect),
    Publish(Message, Quality),
    /// It has a publication.
    Acknowledge(u16),
    /// It has one that is to come exactly once, and waits to hear that it comes no more.
    Received(u16),
    /// It heard that.
    Completed(u16),
    /// It does not take one that is to come exactly once.
    Declined(u16),
    /// It lets go of a publication that is to come exactly once.
    Release(u16),
    /// Filters, each with the level it asks for.
    Subscribe(u16, Vec<(Arc<str>, Level)>),
    Unsubscribe(u16, Vec<Arc<str>>),
    Ping,
    Disconnect {
        /// Its will is to be published even so.
        with_will: bool,
        /// Seconds that its session outlives the connection, if that is to change.
        expiry: Option<u32>,
    },
    /// What a broker has no use for.
    Other,
}

/// Why something is refused, or a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Malformed,
    Protocol,
    Topic,
    Filter,
    Shared,
    Full,
    TooLarge,
    Unknown,
    Name,
    TakenOver,
    Silent,
    NodeGone,
}

impl Reason {
    /// As MQTT 5 numbers it.
    const fn code(self) -> u8 {
        match self {
            Self::Malformed => 0x81,
            Self::Protocol => 0x82,
            Self::Filter => 0x8f,
            Self::Topic => 0x90,
            Self::Unknown => 0x92,
            Self::Shared => 0x9e,
            Self::Full => 0x97,
            Self::TooLarge => 0x95,
            Self::Name => 0x85,
            Self::TakenOver => 0x8e,
            Self::Silent => 0x8d,
            Self::NodeGone => 0x8b,
        }
    }
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Connected(Welcome),
    Refused(Reason),
    Published(Message, Delivered),
    Acknowledged(u16, Option<Reason>),
    Received(u16, Option<Reason>),
    /// What it has comes no more; or nothing of this number was to come.
    Release(u16, Option<Reason>),
    Completed(u16),
    /// By filter, what is granted or why not.
    Subscribed(u16, Vec<Result<Level, Reason>>),
    Unsubscribed(u16, usize),
    Pong,
    /// Then the connection ends.
    Ended(Reason),
}

/// What a client learns when it connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// It has its session from before.
    pub(crate) is_present: bool,
    /// Most octets of a packet.
    pub(crate) packet_max: u32,
    /// Seconds that its session outlives the connection.
    pub(crate) expiry: u32,
    /// Its name, where it had none.
    pub(crate) name: Option<Arc<str>>,
}

/// How a message comes to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    First(Quality),
    /// It left in an earlier connection, too.
    Again(Quality),
}

/// Octets of a packet at the front of `octets`, as its header says; none: there is not enough to tell.
pub(crate) fn length(octets: &[u8]) -> Result<Option<usize>, Reason> {
    let mut length = 0;
    for (at, octet) in octets.iter().skip(1).take(4).enumerate() {
        length |= usize::from(octet & 0x7f) << (7 * at);
        if octet & 0x80 == 0 {
            return Ok(Some(length + at + 2));
        }
    }
    if octets.len() > 4 { Err(Reason::Malformed) } else { Ok(None) }
}

/// The version in the first packet of a client: its protocol level.
pub(crate) fn version(octets: &[u8]) -> Result<Version, Reason> {
    let head = octets.iter().skip(1).take_while(|octet| **octet & 0x80 != 0).count() + 2;
    let name = octets.get(head..head + 7).ok_or(Reason::Malformed)?;
    match name {
        [0, 4, b'M', b'Q', b'T', b'T', 4] => Ok(Version::V3),
        [0, 4, b'M', b'Q', b'T', b'T', 5] => Ok(Version::V5),
        _ => Err(Reason::Protocol),
    }
}

/// Reads one packet, all of `octets`.
pub(crate) fn read(version: Version, octets: &[u8]) -> Result<Said, Reason> {
    match version {
        Version::V3 => match v3::Packet::decode(octets) {
            Ok(Some(packet)) => Ok(of_v3(packet)),
            _ => Err(Reason::Malformed),
        },
        Version::V5 => match v5::Packet::decode(octets) {
            Ok(Some(packet)) => of_v5(packet),
            _ => Err(Reason::Malformed),
        },
    }
}

fn text(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn octets(of: &[u8]) -> Arc<[u8]> {
    Arc::from(of)
}

fn quality(of: QosPid) -> Quality {
    match of {
        QosPid::Level0 => Quality::Most,
        QosPid::Level1(pid) => Quality::Least(pid.value()),
        QosPid::Level2(pid) => Quality::Exactly(pid.value()),
    }
}

fn of_v3(packet: v3::Packet) -> Said {
    match packet {
        v3::Packet::Connect(connect) => Said::Connect(Connect {
            version: Version::V3,
            client: text(&connect.client_id),
            is_clean: connect.clean_session,
            expiry: if connect.clean_session { 0 } else { u32::MAX },
            keep_alive: connect.keep_alive,
            will: connect.last_will.map(|will| {
                let (topic, payload) = (text(&will.topic_name), octets(&will.message));
                (Message { topic, payload, retain: will.retain }, will.qos.into())
            }),
            receive_max: u16::MAX,
            packet_max: u32::MAX,
        }),
        v3::Packet::Publish(publish) => {
            let (topic, payload) = (text(&publish.topic_name), octets(&publish.payload));
            let message = Message { topic, payload, retain: publish.retain };
            Said::Publish(message, quality(publish.qos_pid))
        }
        v3::Packet::Puback(pid) => Said::Acknowledge(pid.value()),
        v3::Packet::Pubrec(pid) => Said::Received(pid.value()),
        v3::Packet::Pubcomp(pid) => Said::Completed(pid.value()),
        v3::Packet::Pubrel(pid) => Said::Release(pid.value()),
        v3::Packet::Subscribe(subscribe) => {
            let filters = subscribe.topics.iter();
            let filters = filters.map(|(filter, asked)| (text(filter), (*asked).into()));
            let filters = filters.collect();
            Said::Subscribe(subscribe.pid.value(), filters)
        }
        v3::Packet::Unsubscribe(unsubscribe) => {
            let filters = unsubscribe.topics.iter().map(|filter| text(filter)).collect();
            Said::Unsubscribe(unsubscribe.pid.value(), filters)
        }
        v3::Packet::Pingreq => Said::Ping,
        v3::Packet::Disconnect => Said::Disconnect { with_will: false, expiry: None },
        _ => Said::Other,
    }
}

fn of_v5(packet: v5::Packet) -> Result<Said, Reason> {
    Ok(match packet {
        v5::Packet::Connect(connect) => Said::Connect(Connect {
            version: Version::V5,
            client: text(&connect.client_id),
            is_clean: connect.clean_start,
            expiry: connect.properties.session_expiry_interval.unwrap_or(0),
            keep_alive: connect.keep_alive,
            will: connect.last_will.map(|will| {
                let (topic, payload) = (text(&will.topic_name), octets(&will.payload));
                (Message { topic, payload, retain: will.retain }, will.qos.into())
            }),
            receive_max: match connect.properties.receive_max {
                Some(0) => return Err(Reason::Protocol),
                of => of.unwrap_or(u16::MAX),
            },
            packet_max: match connect.properties.max_packet_size {
                Some(0) => return Err(Reason::Protocol),
                of => of.unwrap_or(u32::MAX),
            },
        }),
        v5::Packet::Publish(publish) => {
            let (topic, payload) = (text(&publish.topic_name), octets(&publish.payload));
            let message = Message { topic, payload, retain: publish.retain };
            Said::Publish(message, quality(publish.qos_pid))
        }
        v5::Packet::Puback(puback) => Said::Acknowledge(puback.pid.value()),
        v5::Packet::Pubrec(received) => match received.pid.value() {
            number if (received.reason_code as u8) < FAILURE => Said::Received(number),
            number => Said::Declined(number),
        },
        v5::Packet::Pubcomp(completed) => Said::Completed(completed.pid.value()),
        v5::Packet::Pubrel(release) => Said::Release(release.pid.value()),
        v5::Packet::Subscribe(subscribe) => {
            let filters = subscribe.topics.iter();
            let filters = filters.map(|(filter, asked)| (text(filter), asked.max_qos.into()));
            let filters = filters.collect();
            Said::Subscribe(subscribe.pid.value(), filters)
        }
        v5::Packet::Unsubscribe(unsubscribe) => {
            let filters = unsubscribe.topics.iter().map(|filter| text(filter)).collect();
            Said::Unsubscribe(unsubscribe.pid.value(), filters)
        }
        v5::Packet::Pingreq => Said::Ping,
        v5::Packet::Disconnect(disconnect) => {
            let with_will = v5::DisconnectReasonCode::DisconnectWithWillMessage;
            let with_will = disconnect.reason_code == with_will;
            let expiry = disconnect.properties.session_expiry_interval;
            Said::Disconnect { with_will, expiry }
        }
        _ => Said::Other,
    })
}

/// The first code that says no; in MQTT 3.1.1 that of a filter that is refused.
const FAILURE: u8 = 0x80;

/// Writes an answer in the version of the client; nothing where that has no such packet.
pub(crate) fn write(version: Version, answer: &Answer, out: &mut Vec<u8>) {
    let octets = match version {
        Version::V3 => as_v3(answer).and_then(|packet| packet.encode().ok()),
        Version::V5 => as_v5(answer).and_then(|packet| packet.encode().ok()),
    };
    let Some(octets) = octets else { return };
    out.extend_from_slice(octets.as_ref());
    if let (Version::V3, Answer::Subscribed(_, answers)) = (version, answer) {
        // The crate writes another code than it reads.
        let codes = out.iter_mut().rev().zip(answers.iter().rev());
        codes.filter(|(_, answer)| answer.is_err()).for_each(|(code, _)| *code = FAILURE);
    }
}

/// Octets of the packet of MQTT 5 that brings a message (2.1, 3.3).
pub(crate) fn published_len(message: &Message, level: Level) -> usize {
    let number = if level == Level::Most { 0 } else { 2 };
    // Length and octets of the topic, the identifier, no properties, the payload.
    let body = 2 + message.topic.len() + number + 1 + message.payload.len();
    let digits = 1 + (body.checked_ilog2().unwrap_or(0) / 7) as usize;
    1 + digits + body
}

fn pid(number: u16) -> Option<Pid> {
    Pid::try_from(number).ok()
}

fn numbered(of: Delivered) -> Option<QosPid> {
    let (Delivered::First(of) | Delivered::Again(of)) = of;
    match of {
        Quality::Most => Some(QosPid::Level0),
        Quality::Least(number) => pid(number).map(QosPid::Level1),
        Quality::Exactly(number) => pid(number).map(QosPid::Level2),
    }
}

const fn is_again(of: Delivered) -> bool {
    matches!(of, Delivered::Again(_))
}

fn name(topic: &Arc<str>) -> Option<TopicName> {
    TopicName::try_from(Arc::clone(topic)).ok()
}

fn as_v3(answer: &Answer) -> Option<v3::Packet> {
    use v3::{ConnectReturnCode as Code, SubscribeReturnCode as Granted};
    let connack = |is_present, code| Some(v3::Packet::Connack(v3::Connack::new(is_present, code)));
    match answer {
        Answer::Connected(welcome) => connack(welcome.is_present, Code::Accepted),
        Answer::Refused(Reason::Protocol) => connack(false, Code::UnacceptableProtocolVersion),
        Answer::Refused(Reason::Name) => connack(false, Code::IdentifierRejected),
        Answer::Refused(_) => connack(false, Code::ServerUnavailable),
        Answer::Published(message, of) => {
            let (payload, dup) = (message.payload.to_vec().into(), is_again(*of));
            let publish = v3::Publish::new(numbered(*of)?, name(&message.topic)?, payload);
            Some(v3::Packet::Publish(v3::Publish { retain: message.retain, dup, ..publish }))
        }
        Answer::Acknowledged(number, _) => Some(v3::Packet::Puback(pid(*number)?)),
        Answer::Received(number, _) => Some(v3::Packet::Pubrec(pid(*number)?)),
        Answer::Release(number, _) => Some(v3::Packet::Pubrel(pid(*number)?)),
        Answer::Completed(number) => Some(v3::Packet::Pubcomp(pid(*number)?)),
        Answer::Subscribed(number, answers) => {
            let granted = |answer: &Result<Level, Reason>| match answer {
                Ok(Level::Most) => Granted::MaxLevel0,
                Ok(Level::Least) => Granted::MaxLevel1,
                Ok(Level::Exactly) => Granted::MaxLevel2,
                Err(_) => Granted::Failure,
            };
            let granted = answers.iter().map(granted).collect();
            Some(v3::Packet::Suback(v3::Suback::new(pid(*number)?, granted)))
        }
        Answer::Unsubscribed(number, _) => Some(v3::Packet::Unsuback(pid(*number)?)),
        Answer::Pong => Some(v3::Packet::Pingresp),
        Answer::Ended(_) => None,
    }
}

fn as_v5(answer: &Answer) -> Option<v5::Packet> {
    use v5::{ConnectReasonCode as Code, SubscribeReasonCode as Granted};
    match answer {
        Answer::Connected(welcome) => {
            let mut connack = v5::Connack::new(welcome.is_present, Code::Success);
            connack.properties.session_expiry_interval = Some(welcome.expiry);
            connack.properties.assigned_client_id = welcome.name.clone();
            connack.properties.receive_max = Some(RECEIVE_MAX);
            connack.properties.max_packet_size = Some(welcome.packet_max);
            connack.properties.subscription_id_available = Some(false);
            connack.properties.shared_subscription_available = Some(false);
            Some(v5::Packet::Connack(connack))
        }
        Answer::Refused(reason) => {
            let code = Code::from_u8(reason.code()).unwrap_or(Code::ServerUnavailable);
            Some(v5::Packet::Connack(v5::Connack::new(false, code)))
        }
        Answer::Published(message, of) => {
            let (payload, dup) = (message.payload.to_vec().into(), is_again(*of));
            let publish = v5::Publish::new(numbered(*of)?, name(&message.topic)?, payload);
            Some(v5::Packet::Publish(v5::Publish { retain: message.retain, dup, ..publish }))
        }
        Answer::Acknowledged(number, refused) => {
            let code = refused.map_or(v5::PubackReasonCode::Success, |reason| match reason {
                Reason::Topic => v5::PubackReasonCode::TopicNameInvalid,
                _ => v5::PubackReasonCode::QuotaExceeded,
            });
            Some(v5::Packet::Puback(v5::Puback::new(pid(*number)?, code)))
        }
        Answer::Received(number, refused) => {
            let code = refused.map_or(v5::PubrecReasonCode::Success, |reason| match reason {
                Reason::Topic => v5::PubrecReasonCode::TopicNameInvalid,
                _ => v5::PubrecReasonCode::QuotaExceeded,
            });
            Some(v5::Packet::Pubrec(v5::Pubrec::new(pid(*number)?, code)))
        }
        Answer::Release(number, unknown) => {
            let code = unknown.map_or(v5::PubrelReasonCode::Success, |_| {
                v5::PubrelReasonCode::PacketIdentifierNotFound
            });
            Some(v5::Packet::Pubrel(v5::Pubrel::new(pid(*number)?, code)))
        }
        Answer::Completed(number) => {
            Some(v5::Packet::Pubcomp(v5::Pubcomp::new_success(pid(*number)?)))
        }
        Answer::Subscribed(number, answers) => {
            let granted = |answer: &Result<Level, Reason>| match answer {
                Ok(Level::Most) => Granted::GrantedQoS0,
                Ok(Level::Least) => Granted::GrantedQoS1,
                Ok(Level::Exactly) => Granted::GrantedQoS2,
                Err(reason) => Granted::from_u8(reason.code()).unwrap_or(Granted::UnspecifiedError),
            };
            let granted = answers.iter().map(granted).collect();
            Some(v5::Packet::Suback(v5::Suback::new(pid(*number)?, granted)))
        }
        Answer::Unsubscribed(number, count) => {
            let codes = vec![v5::UnsubscribeReasonCode::Success; *count];
            Some(v5::Packet::Unsuback(v5::Unsuback::new(pid(*number)?, codes)))
        }
        Answer::Pong => Some(v5::Packet::Pingresp),
        Answer::Ended(reason) => {
            let code = v5::DisconnectReasonCode::from_u8(reason.code())?;
            Some(v5::Packet::Disconnect(v5::Disconnect::new(code)))
        }
    }
}

/// Publications of a client that are to come exactly once and that it has not let go of, at most.
pub(crate) const RECEIVE_MAX: u16 = 64;

#[cfg(test)]
mod tests;
