//! A value that most feeds have nothing of, which then takes eight bytes. Pure.

use std::ops::Deref;

/// What a value is where there is nothing of it.
pub trait Nothing: PartialEq + 'static {
    const NOTHING: Self;
    /// The same for who only reads it.
    const SHARED: &'static Self;
}

/// A value that is kept only where there is something of it.
#[derive(Debug, Clone)]
pub struct Seldom<T>(Option<Box<T>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Nothing> Deref for Seldom<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::SHARED)
    }
}

impl<T: Nothing> Seldom<T> {
    /// Changes the value.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut nothing = T::NOTHING;
        let value = self.0.as_deref_mut().unwrap_or(&mut nothing);
        let result = change(value);
        let is_nothing = *value == T::NOTHING;
        match self.0 {
            Some(_) if is_nothing => self.0 = None,
            None if !is_nothing => self.0 = Some(Box::new(nothing)),
            _ => {}
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Nothing for String {
        const NOTHING: Self = Self::new();
        const SHARED: &'static Self = &Self::NOTHING;
    }

    #[test]
    fn what_becomes_nothing_takes_no_room() {
        let mut text = Seldom::<String>::default();
        assert!(text.is_empty());
        text.change(|text| text.push('a'));
        assert_eq!((text.as_str(), text.0.is_some()), ("a", true));
        assert_eq!(text.change(String::pop), Some('a'));
        assert_eq!((text.as_str(), text.0.is_some()), ("", false));
    }
}
