//! What the worker and the main process of a box say to each other, over one inherited Unix socket.
//!
//! ```text
//! worker -> box   u32 length, [`Order`] as JSON
//! box -> worker   Ready, with the sockets and pipes that the worker is to use
//! worker -> box   u16 port           (any number of times)
//! box -> worker   Connected, with a connection to that port of the box's loopback; or Failed
//! ```
//!
//! Sockets are made inside the box, in its network, and handed out as descriptors. So the worker accepts and
//! talks on the box's loopback itself: no bytes are copied inside the box, and no socket file is visible in it.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

/// Longest order, bytes. Orders are written by the worker; the bound is against nonsense.
const MAX_ORDER: usize = 1 << 20;

/// Longest message of a box, bytes.
const MAX_REPLY: usize = 1024;

/// Most descriptors that the kernel takes in one message. More of them come with several, a byte of the reply each.
const MAX_FDS: usize = 253;

/// What a box is to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// `false`: no box around it, by configuration. Fixed ports would then collide with those of others.
    pub is_boxed: bool,
    pub kind: Kind,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: String,
    pub limits: ProcessLimits,
    /// Ports of the egress proxies on the box's loopback.
    pub proxy_ports: Vec<u16>,
    /// Port on which code finds its browser.
    pub cdp_port: Option<u16>,
}

/// What kind of program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// Its diagnostics go to the worker; connections to its port are made on request.
    Browser,
    /// It gets pipes, a control socket as descriptor 3, and a filter of system calls.
    Code,
}

/// Limits of each process, where a number is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessLimits {
    /// Open files.
    pub files: Option<u64>,
    /// Size of a written file, bytes.
    pub file_size: Option<u64>,
    /// Private writable memory, bytes. Only where no cgroup limits it.
    pub data: Option<u64>,
    /// Processes and threads of the box's user. Only where no cgroup limits them.
    pub processes: Option<u64>,
    /// By how much they are nicer than the worker.
    pub niceness: u8,
}

/// What a box answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ready,
    Connected,
    Failed(String),
}

impl Reply {
    fn encode(&self) -> Vec<u8> {
        let (tag, text) = match self {
            Self::Ready => (b'R', ""),
            Self::Connected => (b'C', ""),
            Self::Failed(text) => (b'F', text.as_str()),
        };
        let mut end = text.len().min(MAX_REPLY - 3);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = vec![tag];
        bytes.extend((end as u16).to_be_bytes());
        bytes.extend(&text.as_bytes()[..end]);
        bytes
    }

    /// The message at the start of `bytes`, when it is whole.
    fn decode(bytes: &[u8]) -> io::Result<Option<Self>> {
        let [tag, high, low, text @ ..] = bytes else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if text.len() < length {
            return Ok(None);
        }
        match tag {
            b'R' if text.is_empty() => Ok(Some(Self::Ready)),
            b'C' if text.is_empty() => Ok(Some(Self::Connected)),
            b'F' if text.len() == length => Ok(Some(Self::Failed(String::from_utf8_lossy(text).into_owned()))),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }
}

impl Order {
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).ok().filter(|l| *l as usize <= MAX_ORDER);
        let mut bytes = length.ok_or(io::ErrorKind::InvalidInput)?.to_be_bytes().to_vec();
        bytes.extend(json);
        Ok(bytes)
    }

    /// Waits for the order. Fails when the worker is gone.
    pub fn read(from: &mut UnixStream) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_ORDER {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut json = vec![0; length];
        from.read_exact(&mut json)?;
        Ok(serde_json::from_slice(&json)?)
    }
}

/// Sends a reply with descriptors, from inside the box.
pub(super) fn reply(to: &mut UnixStream, reply: &Reply, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = reply.encode();
    let mut sent = 0;
    for fds in fds.chunks(MAX_FDS) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let byte = bytes.get(sent..=sent).filter(|_| control.push(SendAncillaryMessage::ScmRights(fds)));
        let byte = byte.ok_or(io::ErrorKind::InvalidInput)?;
        sent += rustix::net::sendmsg(to.as_fd(), &[IoSlice::new(byte)], &mut control, SendFlags::NOSIGNAL)?;
    }
    to.write_all(&bytes[sent..])
}

/// The next reply with its descriptors, on the worker's side. Fails when the box is gone or talks nonsense.
pub(super) async fn receive(from: &tokio::net::UnixStream) -> io::Result<(Reply, Vec<OwnedFd>)> {
    let (mut bytes, mut fds) = (Vec::new(), Vec::new());
    loop {
        let part = from.async_io(tokio::io::Interest::READABLE, || receive_part(from.as_fd(), &mut fds)).await?;
        if part.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend(part);
        if let Some(reply) = Reply::decode(&bytes)? {
            return Ok((reply, fds));
        }
        if bytes.len() > MAX_REPLY {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn receive_part(from: BorrowedFd<'_>, fds: &mut Vec<OwnedFd>) -> io::Result<Vec<u8>> {
    let mut bytes = [0; MAX_REPLY];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::net::recvmsg(
        from,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    Ok(bytes[..got.bytes].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn replies_arrive_whole_with_their_descriptors() {
        let (mut inside, outside) = UnixStream::pair().unwrap();
        outside.set_nonblocking(true).unwrap();
        let outside = tokio::net::UnixStream::from_std(outside).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        reply(&mut inside, &Reply::Ready, &[reader.as_fd()]).unwrap();
        let (got, fds) = receive(&outside).await.unwrap();
        assert_eq!((got, fds.len()), (Reply::Ready, 1));
        writer.write_all(b"x").unwrap();
        let mut byte = [0];
        io::PipeReader::from(fds.into_iter().next().unwrap()).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");

        reply(&mut inside, &Reply::Failed("ä".repeat(2_000)), &[]).unwrap();
        let Reply::Failed(text) = receive(&outside).await.unwrap().0 else { panic!("not a failure") };
        assert!(text.starts_with("ää") && text.len() < MAX_REPLY);
        drop(inside);
        assert!(receive(&outside).await.is_err());
    }

    #[tokio::test]
    async fn a_reply_takes_more_descriptors_along_than_one_message_does() {
        let (mut inside, outside) = UnixStream::pair().unwrap();
        outside.set_nonblocking(true).unwrap();
        let outside = tokio::net::UnixStream::from_std(outside).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        for number in [6, 300, 700] {
            reply(&mut inside, &Reply::Ready, &vec![reader.as_fd(); number]).unwrap();
            let (got, fds) = receive(&outside).await.unwrap();
            assert_eq!((got, fds.len()), (Reply::Ready, number));
        }
        assert!(reply(&mut inside, &Reply::Ready, &vec![reader.as_fd(); 800]).is_err());
    }

    #[test]
    fn an_order_survives_the_way() {
        let (mut inside, mut outside) = UnixStream::pair().unwrap();
        let order = Order {
            is_boxed: true,
            kind: Kind::Code,
            argv: vec!["true".into()],
            env: vec![("A".into(), "b c".into())],
            cwd: "/".into(),
            limits: ProcessLimits { files: Some(7), ..ProcessLimits::default() },
            proxy_ports: vec![3128],
            cdp_port: None,
        };
        outside.write_all(&order.encode().unwrap()).unwrap();
        let read = Order::read(&mut inside).unwrap();
        assert_eq!((read.argv, read.env, read.limits), (order.argv, order.env, order.limits));
        drop(outside);
        assert!(Order::read(&mut inside).is_err());
    }
}
