//! Which names an expression takes from its scope: what it reads, without what its macros bind.

use std::collections::BTreeSet;

use cel_core::{Expr as Syntax, SpannedExpr};

use super::error::{CelError, Reporter};

/// The names that an expression takes from its scope; names of functions and types may be among them.
///
/// # Errors
/// When it is no CEL.
pub fn free_names(source: &str) -> Result<BTreeSet<String>, CelError> {
    let tree = super::parse(source, &Reporter::new(source))?;
    let mut names = Names { bound: Vec::new(), free: BTreeSet::new(), depth: 0 };
    names.visit(&tree);
    Ok(names.free)
}

struct Names {
    bound: Vec<String>,
    free: BTreeSet<String>,
    depth: usize,
}

impl Names {
    fn visit(&mut self, syntax: &SpannedExpr) {
        // deeper expressions do not compile; what they read does not matter
        if self.depth > super::OPERATORS_MAX + super::NESTING_MAX {
            return;
        }
        self.depth += 1;
        self.form(&syntax.node);
        self.depth -= 1;
    }

    fn form(&mut self, syntax: &Syntax) {
        match syntax {
            Syntax::Ident(name) | Syntax::RootIdent(name) if !self.bound.contains(name) => {
                self.free.insert(name.clone());
            }
            Syntax::List(elements) => elements.iter().for_each(|e| self.visit(&e.expr)),
            Syntax::Map(entries) => {
                for entry in entries {
                    self.visit(&entry.key);
                    self.visit(&entry.value);
                }
            }
            Syntax::Unary { expr, .. } | Syntax::Member { expr, .. } => self.visit(expr),
            Syntax::Binary { left, right, .. } => {
                self.visit(left);
                self.visit(right);
            }
            Syntax::Ternary { cond, then_expr, else_expr } => {
                self.visit(cond);
                self.visit(then_expr);
                self.visit(else_expr);
            }
            Syntax::Index { expr, index, .. } => {
                self.visit(expr);
                self.visit(index);
            }
            Syntax::Call { expr, args } => self.call(expr, args),
            _ => {}
        }
    }

    fn call(&mut self, callee: &SpannedExpr, args: &[SpannedExpr]) {
        let Syntax::Member { expr: receiver, field, .. } = &callee.node else {
            // the name of a function is no variable
            return args.iter().for_each(|a| self.visit(a));
        };
        let is_bind = field == "bind" && matches!(&receiver.node, Syntax::Ident(name) if name == "cel");
        let binders = if is_bind {
            1
        } else {
            self.visit(receiver);
            super::macros::binders(field, args.len())
        };
        let (vars, rest) = args.split_at(binders.min(args.len()));
        let depth = self.bound.len();
        if is_bind && let [init, body @ ..] = rest {
            self.visit(init);
            self.bind(vars);
            body.iter().for_each(|a| self.visit(a));
        } else {
            self.bind(vars);
            rest.iter().for_each(|a| self.visit(a));
        }
        self.bound.truncate(depth);
    }

    fn bind(&mut self, vars: &[SpannedExpr]) {
        for var in vars {
            if let Syntax::Ident(name) = &var.node {
                self.bound.push(name.clone());
            }
        }
    }
}
