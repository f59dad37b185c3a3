// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
)

// packedLiterals returns the composite literals that span several lines and have several elements on one line.
func packedLiterals(s *source) []*ast.CompositeLit {
	var packed []*ast.CompositeLit
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && isPacked(s, lit) {
			packed = append(packed, lit)
		}
		return true
	})
	return packed
}

func isPacked(s *source, lit *ast.CompositeLit) bool {
	if s.line(lit.Lbrace) == s.line(lit.Rbrace) || isTable(lit) {
		return false
	}
	for i := 1; i < len(lit.Elts); i++ {
		if s.line(lit.Elts[i-1].End()) == s.line(lit.Elts[i].Pos()) {
			return true
		}
	}
	return false
}

// isTable reports whether a literal is a list of plain values without keys, such as words or bytes.
func isTable(lit *ast.CompositeLit) bool {
	if _, ok := lit.Type.(*ast.ArrayType); !ok {
		return false
	}
	for _, element := range lit.Elts {
		switch element.(type) {
		case *ast.BasicLit, *ast.Ident, *ast.SelectorExpr:
		default:
			return false
		}
	}
	return true
}

// unpackLiterals returns the insertions that put each element of packed literals on a separate line.
func unpackLiterals(s *source) []edit {
	var edits []edit
	for _, lit := range packedLiterals(s) {
		before := lit.Lbrace
		for _, element := range lit.Elts {
			if s.line(before) == s.line(element.Pos()) {
				edits = append(edits, insertion(s, element.Pos(), "\n"))
			}
			before = element.End()
		}
		if s.line(before) != s.line(lit.Rbrace) {
			continue
		}
		if !hasComma(s, before, lit.Rbrace) {
			edits = append(edits, insertion(s, before, ","))
		}
		edits = append(edits, insertion(s, lit.Rbrace, "\n"))
	}
	return edits
}

// hasComma reports whether there is a comma between the last element and the brace.
func hasComma(s *source, from, to token.Pos) bool {
	for _, c := range s.text[s.offset(from):s.offset(to)] {
		if c == ',' {
			return true
		}
	}
	return false
}

func insertion(s *source, at token.Pos, text string) edit {
	return edit{
		from: s.offset(at),
		to:   s.offset(at),
		text: text,
	}
}
