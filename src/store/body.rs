//! Bodies on disk: compressed once, before the writer's queue.
//!
//! ```text
//! 1 byte codec (0 raw, 1 zstd)   4 bytes dictionary id (LE, 0 = none)
//! 4 bytes length of the body (LE)   the bytes
//! ```
//! The length here caps what decompression may give, whatever the frame claims.

use crate::store::record::Malformed;

const CODEC_RAW: u8 = 0;
const CODEC_ZSTD: u8 = 1;
const LEVEL: i32 = 1;
const HEAD_LEN: usize = 9;

/// Packs a body; what does not shrink is kept as it is.
pub(super) fn pack(body: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(body, LEVEL).ok().filter(|z| z.len() < body.len());
    let (codec, bytes) = packed.as_deref().map_or((CODEC_RAW, body), |z| (CODEC_ZSTD, z));
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(HEAD_LEN + bytes.len());
    out.push(codec);
    out.extend_from_slice(&0_u32.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
    out
}

/// Gives the body back byte for byte.
pub(super) fn unpack(stored: &[u8]) -> Result<Vec<u8>, Malformed> {
    let bad = |why: &str| Malformed { what: "bodies", why: why.to_owned() };
    let (head, bytes) = stored.split_first_chunk::<HEAD_LEN>().ok_or_else(|| bad("it is too short"))?;
    let [codec, d0, d1, d2, d3, l0, l1, l2, l3] = *head;
    let len = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).map_err(|_| bad("its length"))?;
    let body = match (codec, u32::from_le_bytes([d0, d1, d2, d3])) {
        (CODEC_RAW, 0) => bytes.to_vec(),
        (CODEC_ZSTD, 0) => zstd::bulk::decompress(bytes, len).map_err(|e| bad(&e.to_string()))?,
        (codec, dictionary) => return Err(bad(&format!("codec {codec}, dictionary {dictionary} are not known"))),
    };
    if body.len() == len { Ok(body) } else { Err(bad("its length differs")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back_byte_for_byte() {
        let noise: Vec<u8> = (0..2000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for body in [&b""[..], b"a", &[0, 255, 10, 13], "я".repeat(5000).as_bytes(), &noise] {
            assert_eq!(unpack(&pack(body)).unwrap(), body);
        }
        assert!(pack("я".repeat(5000).as_bytes()).len() < 200);
    }

    #[test]
    fn damage_is_an_error_not_a_body() {
        let packed = pack("привет ".repeat(100).as_bytes());
        for cut in 0..packed.len() {
            assert!(unpack(&packed[..cut]).is_err(), "cut at {cut}");
        }
        let mut unknown = packed.clone();
        unknown[0] = 9;
        assert!(unpack(&unknown).is_err());
        let mut claims_less = packed;
        claims_less[5] = 1;
        claims_less[6] = 0;
        assert!(unpack(&claims_less).is_err());
    }
}
