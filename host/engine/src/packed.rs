//! Packs machine code for embedding in a program, at half the size. With LZ4, because every process unpacks
//! the code at its first use, in a few milliseconds.

/// Compresses machine code.
pub fn pack_code(code: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(code)
}

/// Decompresses the output of [`pack_code`]; `None`: the bytes are something else.
pub fn unpack_code(packed: &[u8]) -> Option<Vec<u8>> {
    lz4_flex::block::decompress_size_prepended(packed).ok()
}
