//! Packets of MQTT 3.1.1 and 5, as much of them as a broker needs: read and written by `mqtt_proto`.
//!
//! A packet is read from exactly its octets; what its header says of its length is looked at first.

use mqtt_proto::{Pid, QosPid, TopicName, v3, v5};
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
    pub(crate) payload: Vec<u8>,
    pub(crate) retain: bool,
}

/// What a client wants when it connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connect {
    pub(crate) version: Version,
    pub(crate) client: Arc<str>,
    /// Seconds; 0: it may be silent.
    pub(crate) keep_alive: u16,
    pub(crate) will: Option<Message>,
}

/// How often a publication is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quality {
    Most,
    Least(u16),
    Exactly(u16),
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Connect(Connect),
    Publish(Message, Quality),
    /// It lets go of a publication that is to come exactly once.
    Release(u16),
    Subscribe(u16, Vec<Arc<str>>),
    Unsubscribe(u16, Vec<Arc<str>>),
    Ping,
    /// Whether its will is to be published even so.
    Disconnect(bool),
    /// An acknowledgement of what nobody waits for.
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
            Self::Shared => 0x9e,
            Self::Full => 0x97,
            Self::TooLarge => 0x95,
            Self::TakenOver => 0x8e,
            Self::Silent => 0x8d,
            Self::NodeGone => 0x8b,
        }
    }
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With the most octets of a packet.
    Connected(u32),
    Refused(Reason),
    Published(Message),
    Acknowledged(u16, Option<Reason>),
    Received(u16, Option<Reason>),
    Completed(u16),
    /// By filter, why not.
    Subscribed(u16, Vec<Option<Reason>>),
    Unsubscribed(u16, usize),
    Pong,
    /// Then the connection ends.
    Ended(Reason),
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
            Ok(Some(packet)) => Ok(of_v5(packet)),
            _ => Err(Reason::Malformed),
        },
    }
}

fn text(name: &str) -> Arc<str> {
    Arc::from(name)
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
            keep_alive: connect.keep_alive,
            will: connect.last_will.map(|will| Message {
                topic: text(&will.topic_name),
                payload: will.message.to_vec(),
                retain: will.retain,
            }),
        }),
        v3::Packet::Publish(publish) => {
            let (topic, payload) = (text(&publish.topic_name), publish.payload.to_vec());
            let message = Message { topic, payload, retain: publish.retain };
            Said::Publish(message, quality(publish.qos_pid))
        }
        v3::Packet::Pubrel(pid) => Said::Release(pid.value()),
        v3::Packet::Subscribe(subscribe) => {
            let filters = subscribe.topics.iter().map(|(filter, _)| text(filter)).collect();
            Said::Subscribe(subscribe.pid.value(), filters)
        }
        v3::Packet::Unsubscribe(unsubscribe) => {
            let filters = unsubscribe.topics.iter().map(|filter| text(filter)).collect();
            Said::Unsubscribe(unsubscribe.pid.value(), filters)
        }
        v3::Packet::Pingreq => Said::Ping,
        v3::Packet::Disconnect => Said::Disconnect(false),
        _ => Said::Other,
    }
}

fn of_v5(packet: v5::Packet) -> Said {
    match packet {
        v5::Packet::Connect(connect) => Said::Connect(Connect {
            version: Version::V5,
            client: text(&connect.client_id),
            keep_alive: connect.keep_alive,
            will: connect.last_will.map(|will| Message {
                topic: text(&will.topic_name),
                payload: will.payload.to_vec(),
                retain: will.retain,
            }),
        }),
        v5::Packet::Publish(publish) => {
            let (topic, payload) = (text(&publish.topic_name), publish.payload.to_vec());
            let message = Message { topic, payload, retain: publish.retain };
            Said::Publish(message, quality(publish.qos_pid))
        }
        v5::Packet::Pubrel(release) => Said::Release(release.pid.value()),
        v5::Packet::Subscribe(subscribe) => {
            let filters = subscribe.topics.iter().map(|(filter, _)| text(filter)).collect();
            Said::Subscribe(subscribe.pid.value(), filters)
        }
        v5::Packet::Unsubscribe(unsubscribe) => {
            let filters = unsubscribe.topics.iter().map(|filter| text(filter)).collect();
            Said::Unsubscribe(unsubscribe.pid.value(), filters)
        }
        v5::Packet::Pingreq => Said::Ping,
        v5::Packet::Disconnect(disconnect) => {
            let with_will = v5::DisconnectReasonCode::DisconnectWithWillMessage;
            Said::Disconnect(disconnect.reason_code == with_will)
        }
        _ => Said::Other,
    }
}

/// Writes an answer in the version of the client; nothing where that has no such packet.
pub(crate) fn write(version: Version, answer: &Answer, out: &mut Vec<u8>) {
    let octets = match version {
        Version::V3 => as_v3(answer).and_then(|packet| packet.encode().ok()),
        Version::V5 => as_v5(answer).and_then(|packet| packet.encode().ok()),
    };
    if let Some(octets) = octets {
        out.extend_from_slice(octets.as_ref());
    }
}

fn pid(number: u16) -> Option<Pid> {
    Pid::try_from(number).ok()
}

fn name(topic: &Arc<str>) -> Option<TopicName> {
    TopicName::try_from(Arc::clone(topic)).ok()
}

fn as_v3(answer: &Answer) -> Option<v3::Packet> {
    use v3::{ConnectReturnCode as Code, SubscribeReturnCode as Granted};
    let connack = |code| Some(v3::Packet::Connack(v3::Connack::new(false, code)));
    match answer {
        Answer::Connected(_) => connack(Code::Accepted),
        Answer::Refused(Reason::Protocol) => connack(Code::UnacceptableProtocolVersion),
        Answer::Refused(_) => connack(Code::ServerUnavailable),
        Answer::Published(message) => {
            let payload = message.payload.clone().into();
            let publish = v3::Publish::new(QosPid::Level0, name(&message.topic)?, payload);
            Some(v3::Packet::Publish(v3::Publish { retain: message.retain, ..publish }))
        }
        Answer::Acknowledged(number, _) => Some(v3::Packet::Puback(pid(*number)?)),
        Answer::Received(number, _) => Some(v3::Packet::Pubrec(pid(*number)?)),
        Answer::Completed(number) => Some(v3::Packet::Pubcomp(pid(*number)?)),
        Answer::Subscribed(number, refused) => {
            let granted = |refused: &Option<Reason>| match refused {
                None => Granted::MaxLevel0,
                Some(_) => Granted::Failure,
            };
            let granted = refused.iter().map(granted).collect();
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
        Answer::Connected(octets_max) => {
            let mut connack = v5::Connack::new(false, Code::Success);
            connack.properties.session_expiry_interval = Some(0);
            connack.properties.receive_max = Some(RECEIVE_MAX);
            connack.properties.max_packet_size = Some(*octets_max);
            connack.properties.subscription_id_available = Some(false);
            connack.properties.shared_subscription_available = Some(false);
            Some(v5::Packet::Connack(connack))
        }
        Answer::Refused(reason) => {
            let code = Code::from_u8(reason.code()).unwrap_or(Code::ServerUnavailable);
            Some(v5::Packet::Connack(v5::Connack::new(false, code)))
        }
        Answer::Published(message) => {
            let payload = message.payload.clone().into();
            let publish = v5::Publish::new(QosPid::Level0, name(&message.topic)?, payload);
            Some(v5::Packet::Publish(v5::Publish { retain: message.retain, ..publish }))
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
        Answer::Completed(number) => {
            Some(v5::Packet::Pubcomp(v5::Pubcomp::new_success(pid(*number)?)))
        }
        Answer::Subscribed(number, refused) => {
            let granted = |refused: &Option<Reason>| match refused {
                None => Granted::GrantedQoS0,
                Some(reason) => {
                    Granted::from_u8(reason.code()).unwrap_or(Granted::UnspecifiedError)
                }
            };
            let granted = refused.iter().map(granted).collect();
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
mod tests {
    use super::*;
    use mqtt_proto::QoS;

    /// What a client of either version sends.
    fn said(version: Version) -> Vec<Vec<u8>> {
        let topic = || TopicName::try_from("a/b").unwrap();
        let filter = || mqtt_proto::TopicFilter::try_from("a/+/#").unwrap();
        let one = Pid::try_from(7).unwrap();
        let encoded = match version {
            Version::V3 => [
                v3::Packet::Connect(v3::Connect::new("me".into(), 60)),
                v3::Packet::Publish(v3::Publish::new(
                    QosPid::Level2(one),
                    topic(),
                    b"x"[..].into(),
                )),
                v3::Packet::Subscribe(v3::Subscribe::new(one, vec![(filter(), QoS::Level1)])),
            ]
            .map(|packet| packet.encode().unwrap().as_ref().to_vec()),
            Version::V5 => [
                v5::Packet::Connect(v5::Connect::new("me".into(), 60)),
                v5::Packet::Publish(v5::Publish::new(
                    QosPid::Level2(one),
                    topic(),
                    b"x"[..].into(),
                )),
                v5::Packet::Subscribe(v5::Subscribe::new(
                    one,
                    vec![(filter(), v5::SubscriptionOptions::new(QoS::Level1))],
                )),
            ]
            .map(|packet| packet.encode().unwrap().as_ref().to_vec()),
        };
        encoded.to_vec()
    }

    #[test]
    fn packets_of_both_versions_read_alike() {
        for of in [Version::V3, Version::V5] {
            let all = said(of);
            assert_eq!(version(&all[0]), Ok(of));
            assert!(all.iter().all(|packet| length(packet) == Ok(Some(packet.len()))));
            let read: Vec<Said> = all.iter().map(|packet| read(of, packet).unwrap()).collect();
            let (client, topic) = ("me".into(), "a/b".into());
            let connect = Connect { version: of, client, keep_alive: 60, will: None };
            let message = Message { topic, payload: b"x".to_vec(), retain: false };
            assert_eq!(
                read,
                [
                    Said::Connect(connect),
                    Said::Publish(message, Quality::Exactly(7)),
                    Said::Subscribe(7, vec!["a/+/#".into()]),
                ]
            );
        }
    }

    #[test]
    fn whatever_octets_come_nothing_worse_happens_than_that_they_are_refused() {
        for of in [Version::V3, Version::V5] {
            for packet in said(of) {
                for at in 0..packet.len() {
                    let _ =
                        (read(of, &packet[..at]), version(&packet[..at]), length(&packet[..at]));
                    for octet in [0, 1, 0x7f, 0x80, 0xff] {
                        let mut changed = packet.clone();
                        changed[at] = octet;
                        let _ = (read(of, &changed), version(&changed), length(&changed));
                    }
                }
            }
        }
        assert_eq!(length(&[0x30, 0x80, 0x80, 0x80, 0x80, 1]), Err(Reason::Malformed));
        assert_eq!(length(&[0x30, 0xff, 0xff, 0xff, 0x7f]), Ok(Some(268_435_460)));
        assert_eq!((length(&[]), length(&[0x30, 0x80])), (Ok(None), Ok(None)));
    }
}
