//! Little-endian numbers out of bytes whose length is not trusted.

/// A run of bytes at `at`, if all of them are there.
pub fn slice(bytes: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(length)?)
}

/// One byte.
pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Two bytes.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(slice(bytes, at, 2)?.try_into().ok()?))
}

/// Four bytes.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(slice(bytes, at, 4)?.try_into().ok()?))
}

/// Four bytes that are a position or a length.
pub fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}

/// Eight bytes.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(slice(bytes, at, 8)?.try_into().ok()?))
}

/// Eight bytes that are a number with a fraction.
pub fn f64_at(bytes: &[u8], at: usize) -> Option<f64> {
    u64_at(bytes, at).map(f64::from_bits)
}

/// The packed number of Excel's records: a whole number or the upper half of a fraction, perhaps in hundredths.
pub fn rk(value: u32) -> f64 {
    let number =
        if value & 2 == 0 { f64::from_bits(u64::from(value & !3) << 32) } else { f64::from(value.cast_signed() >> 2) };
    if value & 1 == 0 { number } else { number / 100.0 }
}
