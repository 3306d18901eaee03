//! Rich text as tokens.

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Open,
    Close,
    /// A control word with its number.
    Word(&'a str, Option<i32>),
    /// A control symbol.
    Symbol(u8),
    /// One byte of text, in the code page of its font.
    Byte(u8),
}

/// What is left to read.
#[derive(Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// From the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Leaves bytes out.
    pub fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.bytes.len());
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next token.
    pub fn next_token(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = self.peek()?;
            self.at += 1;
            return Some(match byte {
                b'{' => Token::Open,
                b'}' => Token::Close,
                b'\\' => self.control()?,
                b'\r' | b'\n' | b'\0' => continue,
                byte => Token::Byte(byte),
            });
        }
    }

    fn control(&mut self) -> Option<Token<'a>> {
        let first = self.peek()?;
        if !first.is_ascii_alphabetic() {
            self.at += 1;
            return Some(match first {
                b'\'' => {
                    let digit = |at: usize| char::from(*self.bytes.get(at)?).to_digit(16);
                    let byte = digit(self.at).zip(digit(self.at + 1)).map(|(high, low)| high * 16 + low);
                    self.skip(2);
                    Token::Byte(byte.and_then(|byte| u8::try_from(byte).ok()).unwrap_or(b'?'))
                }
                b'\\' | b'{' | b'}' => Token::Byte(first),
                symbol => Token::Symbol(symbol),
            });
        }
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            self.at += 1;
        }
        let word = str::from_utf8(self.bytes.get(from..self.at)?).ok()?;
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let number = str::from_utf8(self.bytes.get(from..self.at)?).ok()?.parse().ok();
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        Some(Token::Word(word, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_their_numbers_and_spaces() {
        let mut scanner = Scanner::new(b"{\\b0 a\\'e9\\u-3 ?\\~\\{}");
        let expected = [
            Token::Open,
            Token::Word("b", Some(0)),
            Token::Byte(b'a'),
            Token::Byte(0xe9),
            Token::Word("u", Some(-3)),
            Token::Byte(b'?'),
            Token::Symbol(b'~'),
            Token::Byte(b'{'),
            Token::Close,
        ];
        for token in expected {
            assert_eq!(scanner.next_token(), Some(token));
        }
        assert_eq!(scanner.next_token(), None);
    }
}
