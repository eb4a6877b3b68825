//! Ports on loopback that stay reserved while their server is down, so that it can come back on the same one.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::error::Error;

/// Below the range that Linux takes ports of outgoing connections from (32768 and up, `ip_local_port_range` in the kernel's
/// ip-sysctl.rst): a client that keeps trying to reach a server that is down could otherwise connect to itself.
const RANGE: RangeInclusive<u16> = 20_000..=29_999;

/// A TCP port on loopback. No other test takes it while this value lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// The UDP port of the same number, which no server here uses: a lock that all processes see and that ends with this one.
    _reservation: UdpSocket,
}

impl Port {
    /// Reserves a free port.
    pub fn reserve() -> Result<Self, Error> {
        static RESERVED: AtomicU16 = AtomicU16::new(0);
        let length = RANGE.end() - RANGE.start() + 1;
        // processes start looking in different places
        let start = u16::try_from(process::id().wrapping_mul(37) % u32::from(length)).unwrap_or(0);
        for _ in RANGE {
            let offset = (start + RESERVED.fetch_add(1, Ordering::Relaxed) % length) % length;
            let address = (Ipv4Addr::LOCALHOST, RANGE.start() + offset);
            if let Ok(reservation) = UdpSocket::bind(address)
                && TcpListener::bind(address).is_ok()
            {
                return Ok(Self { number: address.1, _reservation: reservation });
            }
        }
        Err(Error::Ports(format!("{RANGE:?}")))
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}
