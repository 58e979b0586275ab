use bytes::{BufMut as _, Bytes, BytesMut};

/// Bytes in memory, in one piece or several that follow each other.
///
/// Bytes that arrive in pieces are hashed and written as they are: joining them would copy each once more.
#[derive(Clone, Debug)]
pub enum Pieces {
    /// All bytes.
    One(Bytes),
    /// Several pieces, in order.
    Many(Vec<Bytes>),
}

impl Pieces {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.as_slice().iter().map(Bytes::len).sum()
    }

    /// True without bytes.
    pub fn is_empty(&self) -> bool {
        self.as_slice().iter().all(Bytes::is_empty)
    }

    /// The pieces in order.
    pub fn as_slice(&self) -> &[Bytes] {
        match self {
            Self::One(bytes) => std::slice::from_ref(bytes),
            Self::Many(pieces) => pieces,
        }
    }

    /// All bytes as one piece; copied only if there are several.
    pub fn whole(&self) -> Bytes {
        match self.as_slice() {
            [one] => one.clone(),
            pieces => {
                let mut whole = BytesMut::with_capacity(self.len());
                pieces.iter().for_each(|piece| whole.put_slice(piece));
                whole.freeze()
            }
        }
    }
}

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        Self::One(bytes)
    }
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self::Many(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_not_copied_and_several_are_joined_in_order() {
        let one = Bytes::from(vec![1, 2, 3]);
        for pieces in [Pieces::from(one.clone()), Pieces::from(vec![one.clone()])] {
            assert_eq!((pieces.whole().as_ptr(), pieces.len()), (one.as_ptr(), 3));
        }
        let several = Pieces::from(vec![one, Bytes::new(), Bytes::from_static(&[4])]);
        assert_eq!((several.whole().to_vec(), several.len()), (vec![1, 2, 3, 4], 4));
        assert!(
            Pieces::from(vec![Bytes::new(), Bytes::new()]).is_empty() && Pieces::from(Vec::new()).is_empty()
        );
    }
}
