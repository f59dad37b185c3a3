// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// An assignment is a statement that assigns several values at once.
type assignment struct {
	stmt    *ast.AssignStmt
	inBlock bool // not in the head of an if, for or switch
}

// assignments returns the statements that assign at least n values from the same number of expressions.
func assignments(s *source, n int) []assignment {
	alone := map[ast.Stmt]bool{}
	var found []assignment
	ast.Inspect(s.file, func(node ast.Node) bool {
		for _, stmt := range statements(node) {
			alone[stmt] = true
		}
		stmt, ok := node.(*ast.AssignStmt)
		if ok && len(stmt.Lhs) >= n && len(stmt.Lhs) == len(stmt.Rhs) {
			found = append(found, assignment{
				stmt:    stmt,
				inBlock: alone[stmt],
			})
		}
		return true
	})
	return found
}

func statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// splitAssignments returns the replacements that put each value into a separate statement. A value that calls a
// function may depend on an earlier assignment of the same statement, so such statements are split only if calls is
// set.
func splitAssignments(s *source, calls bool) []edit {
	var edits []edit
	for _, a := range assignments(s, 2) {
		if !a.inBlock || !isSplittable(s, a.stmt, calls) {
			continue
		}
		var lines []string
		for i, left := range a.stmt.Lhs {
			lines = append(lines, s.source(left)+" "+operator(a.stmt, left)+" "+s.source(a.stmt.Rhs[i]))
		}
		edits = append(edits, edit{
			from: s.offset(a.stmt.Pos()),
			to:   s.offset(a.stmt.End()),
			text: strings.Join(lines, "\n"),
		})
	}
	return edits
}

// operator returns the operator for one variable: ":=" only if the statement declares the variable.
func operator(stmt *ast.AssignStmt, left ast.Expr) string {
	id, ok := left.(*ast.Ident)
	if stmt.Tok == token.ASSIGN || !ok || id.Name == "_" {
		return "="
	}
	// The parser's own resolution is sufficient to find the statement that declares a local variable.
	if id.Obj != nil && id.Obj.Decl == stmt {
		return ":="
	}
	return "="
}

// isSplittable reports whether splitting preserves the behavior of a statement: no value depends on a variable that the
// statement assigned before it.
func isSplittable(s *source, stmt *ast.AssignStmt, calls bool) bool {
	if stmt.Tok != token.ASSIGN && stmt.Tok != token.DEFINE {
		return false
	}
	for i, left := range stmt.Lhs {
		declared := operator(stmt, left) == ":="
		for _, right := range stmt.Rhs[i+1:] {
			if mentions(s, right, left) || (!declared && !calls && hasCall(right)) {
				return false
			}
		}
		if isSpread(s, stmt.Rhs[i]) && len(stmt.Rhs) > 1 && strings.Contains(s.source(stmt.Rhs[i]), "//") {
			return false
		}
	}
	return true
}

func isSpread(s *source, e ast.Expr) bool {
	return s.line(e.Pos()) != s.line(e.End())
}

// mentions reports whether an expression contains the text of another, or the variable that the other starts with.
func mentions(s *source, in, of ast.Expr) bool {
	found := false
	root := rootOf(of)
	text := s.source(of)
	ast.Inspect(in, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && s.source(e) == text {
			found = true
		}
		if id, ok := n.(*ast.Ident); ok && root != nil && root == of && id.Name == root.Name {
			found = true
		}
		return !found
	})
	return found
}

func rootOf(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return rootOf(e.X)
	case *ast.IndexExpr:
		return rootOf(e.X)
	case *ast.StarExpr:
		return rootOf(e.X)
	}
	return nil
}

func hasCall(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			found = true
		}
		return !found
	})
	return found
}
