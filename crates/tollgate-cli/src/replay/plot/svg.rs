//! Just enough of SVG 1.1 to write text, lines and bars.

use std::fmt::{self, Display, Write};

/// A length in hundredths of a pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Px(u64);

impl Px {
    pub(super) const fn whole(pixels: u64) -> Self {
        Self(pixels * 100)
    }

    pub(super) const fn hundredths(hundredths: u64) -> Self {
        Self(hundredths)
    }

    /// This length times `part / whole`, and all of it where `part` is more.
    pub(super) fn scaled(self, part: u64, whole: u64) -> Self {
        if part >= whole {
            return self;
        }
        let scaled = u128::from(self.0) * u128::from(part) / u128::from(whole);
        Self(u64::try_from(scaled).unwrap_or(self.0))
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 100 {
            0 => write!(f, "{}", self.0 / 100),
            hundredths => write!(f, "{}.{hundredths:02}", self.0 / 100),
        }
    }
}

/// Where a text stands in relation to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    pub(super) size: u64,
    pub(super) is_bold: bool,
    pub(super) color: &'static str,
    pub(super) anchor: Anchor,
}

/// A drawing on a white ground.
#[derive(Debug)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    /// `title` and `description` are read out to those who cannot see the drawing.
    pub(super) fn new(width: Px, height: Px, title: &str, description: &str) -> Self {
        let mut svg = Self {
            body: String::new(),
        };
        svg.push(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<desc>{}</desc>\n",
            Escaped(title),
            Escaped(description)
        ));
        svg.bar(Px::default(), Px::default(), width, height, "#ffffff");
        svg
    }

    pub(super) fn text(&mut self, x: Px, y: Px, style: TextStyle, text: &str) {
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\"{}>{}</text>\n",
            Attributes(style),
            Escaped(text)
        ));
    }

    /// A text that runs upwards.
    pub(super) fn upright_text(&mut self, x: Px, y: Px, style: TextStyle, text: &str) {
        self.push(format_args!(
            "<text transform=\"translate({x} {y}) rotate(-90)\"{}>{}</text>\n",
            Attributes(style),
            Escaped(text)
        ));
    }

    pub(super) fn line(&mut self, from: (Px, Px), to: (Px, Px), color: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\"/>\n"
        ));
    }

    pub(super) fn bar(&mut self, x: Px, y: Px, width: Px, height: Px, color: &str) {
        self.push(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{color}\"/>\n"
        ));
    }

    /// Many bars of one colour as one shape: left, top, width and height of each.
    pub(super) fn bars(&mut self, bars: &[(Px, Px, Px, Px)], color: &str) {
        if bars.is_empty() {
            return;
        }
        self.push(format_args!("<path fill=\"{color}\" d=\""));
        for (x, y, width, height) in bars {
            self.push(format_args!("M{x} {y}h{width}v{height}h-{width}z"));
        }
        self.push(format_args!("\"/>\n"));
    }

    pub(super) fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        self.body
            .write_fmt(text)
            .expect("writing to a String cannot fail");
    }
}

struct Attributes(TextStyle);

impl Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            " font-size=\"{}\" fill=\"{}\"",
            self.0.size, self.0.color
        )?;
        if self.0.is_bold {
            f.write_str(" font-weight=\"bold\"")?;
        }
        f.write_str(match self.0.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        })
    }
}

/// A text with the characters that mean something in XML written as references.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // XML 1.0 has no way to write these.
                '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_str("\u{fffd}")?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_scaled_without_overflow_and_print_two_decimals() {
        assert_eq!(Px::whole(10).scaled(1, 3).to_string(), "3.33");
        assert_eq!(
            Px::whole(10).scaled(u64::MAX - 1, u64::MAX).to_string(),
            "9.99"
        );
        assert_eq!(Px::whole(10).scaled(5, 0).to_string(), "10");
        assert_eq!(Px::hundredths(1205).to_string(), "12.05");
    }

    #[test]
    fn text_cannot_end_its_element() {
        let mut svg = Svg::new(Px::whole(1), Px::whole(1), "<&>", "\"\u{1}");
        let style = TextStyle {
            size: 10,
            is_bold: false,
            color: "#000",
            anchor: Anchor::Start,
        };
        svg.text(Px::default(), Px::default(), style, "</text><script>");
        let drawing = svg.finish();
        assert!(drawing.contains("<title>&lt;&amp;&gt;</title>"));
        assert!(drawing.contains("<desc>&quot;\u{fffd}</desc>"));
        assert!(drawing.contains(">&lt;/text&gt;&lt;script&gt;</text>"));
    }
}
