//! minijinja templates: strict, with fuel, without loader, clock or environment.

use std::sync::Arc;

use minijinja::{Environment, UndefinedBehavior};

/// Instructions and allocations that one rendering may spend (1 fuel is about
/// one instruction or 64 bytes), so a looping template ends in milliseconds.
const FUEL: u64 = 50_000;
const RECURSION_MAX: usize = 32;
const NAME: &str = "template";

/// A compiled template; cheap to clone.
#[derive(Clone, Debug)]
pub struct Template {
    source: Arc<str>,
    environment: Arc<Environment<'static>>,
}

/// A template that cannot be compiled or rendered; says the line and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct TemplateError {
    text: String,
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`TemplateError`] with the line of the mistake.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION_MAX);
        environment.add_template_owned(NAME, source.to_owned()).map_err(|e| describe(&e))?;
        Ok(Self { source: source.into(), environment: Arc::new(environment) })
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Fills it from a JSON object.
    ///
    /// # Errors
    /// [`TemplateError`]: usually a variable that the data lacks.
    pub fn render(&self, data: &serde_json::Value) -> Result<String, TemplateError> {
        let template = self.environment.get_template(NAME).map_err(|e| describe(&e))?;
        template.render(minijinja::Value::from(minijinja::value::Serde(data))).map_err(|e| describe(&e))
    }
}

fn describe(error: &minijinja::Error) -> TemplateError {
    let line = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let detail = error.detail().map_or_else(|| error.kind().to_string(), |d| format!("{}: {d}", error.kind()));
    TemplateError { text: format!("{line}{detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, data: serde_json::Value, expected: Result<&str, &str>) {
        let got = Template::parse(source).and_then(|t| t.render(&data));
        match (&got, expected) {
            (Ok(text), Ok(want)) => assert_eq!(text, want),
            (Err(e), Err(part)) => assert!(e.to_string().contains(part), "{e} lacks {part}"),
            _ => panic!("{source}: got {got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn templates_are_strict_bounded_and_closed() {
        let order = serde_json::json!({"order": {"name": "#1 <b>", "id": 912_345_678_901_234_567_u64}});
        check("Заказ {{ order.name }}", order.clone(), Ok("Заказ #1 <b>"));
        check("{{ order.id }}", order.clone(), Ok("912345678901234567"));
        check("a\n{{ order.nmae }}", order.clone(), Err("line 2: undefined value"));
        check("{{ order.name", order.clone(), Err("line 1"));
        check("{{ order.name|flot }}", order.clone(), Err("flot"));
        check("{% include 'x' %}", order.clone(), Err("x"));
        check("{% for i in range(10000) %}{% for j in range(10000) %}x{% endfor %}{% endfor %}", order, Err("fuel"));
    }
}
