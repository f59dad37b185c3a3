// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// ccmPackages lists the packages that define event reasons of the cloud controller manager, with their clouds.
var ccmPackages = []struct{ folder, cloud string }{
	{"cpi", "all"},
	{"cpi/service", "all"},
	{"cpi/kubevip", "VCD"},
	{"cpi/vcd", "VCD"},
	{"internal/lb", "VCD"},
	{"cpi/cloudstack", "CloudStack"},
	{"cpi/vsphere", "vSphere"},
}

// A reasonConstant is a constant for a reason. meaning is its comment without the name.
type reasonConstant struct{ value, meaning, cloud string }

// ccmEvents collects the reasons of the events that the code records.
type ccmEvents struct {
	t *testing.T
	// constants maps package and name to constants. takers maps package and name of functions to the index of their
	// parameter for a reason. Exported functions have no package in their key, because other packages call them.
	constants map[string]reasonConstant
	takers    map[string]int
	rows      map[string]bool

	pkg string // package of the current file
}

// ccmEventRows returns the rows of the table of events of the cloud controller manager.
func ccmEventRows(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	e := &ccmEvents{
		t:         t,
		constants: map[string]reasonConstant{},
		takers:    map[string]int{},
		rows:      map[string]bool{},
	}
	var files []*ast.File
	for _, p := range ccmPackages {
		names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(p.folder), "*.go"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			g.Expect(err).NotTo(HaveOccurred())
			e.declared(file, p.cloud)
			files = append(files, file)
		}
	}
	for _, file := range files {
		e.pkg = file.Name.Name
		ast.Inspect(file, e.visit)
	}
	var rows []string
	for row := range e.rows {
		rows = append(rows, row)
	}
	g.Expect(len(rows)).To(BeNumerically(">", 50))
	slices.Sort(rows)
	return strings.Join(rows, "")
}

var means = regexp.MustCompile(`^\w+(:| means that) `)

// declared collects the constants of a file, and the functions with a parameter for a reason.
func (e *ccmEvents) declared(file *ast.File, cloud string) {
	pkg := file.Name.Name
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				e.constant(pkg, cloud, d, spec)
			}
		case *ast.FuncDecl:
			index := 0
			for _, field := range d.Type.Params.List {
				for _, name := range field.Names {
					if name.Name == "reason" {
						e.takers[ofPackage(pkg, d.Name.Name)] = index
					}
					index++
				}
			}
		}
	}
}

func (e *ccmEvents) constant(pkg, cloud string, of *ast.GenDecl, spec ast.Spec) {
	value, ok := spec.(*ast.ValueSpec)
	if !ok || of.Tok != token.CONST || len(value.Values) != 1 {
		return
	}
	literal, ok := value.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	comment := oneLine(value.Doc.Text())
	if comment == "" {
		comment = oneLine(of.Doc.Text())
	}
	meaning := ""
	if means.MatchString(comment) {
		meaning = strings.TrimSuffix(means.ReplaceAllString(comment, ""), ".")
	}
	unquoted, err := strconv.Unquote(literal.Value)
	NewWithT(e.t).Expect(err).NotTo(HaveOccurred())
	e.constants[pkg+"."+value.Names[0].Name] = reasonConstant{unquoted, meaning, cloud}
}

func ofPackage(pkg, function string) string {
	if ast.IsExported(function) {
		return function
	}
	return pkg + "." + function
}

// visit collects the reason in a call, a composite literal or an assignment.
func (e *ccmEvents) visit(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.CallExpr:
		e.call(x)
	case *ast.CompositeLit:
		if list, ok := x.Type.(*ast.ArrayType); ok {
			for _, element := range x.Elts {
				if literal, ok := element.(*ast.CompositeLit); ok && literal.Type == nil {
					e.literal(literal, nameOf(list.Elt))
				}
			}
		}
		e.literal(x, nameOf(x.Type))
	case *ast.AssignStmt:
		for i, left := range x.Lhs {
			if s, ok := left.(*ast.SelectorExpr); ok && s.Sel.Name == "Reason" {
				e.row(x.Rhs[i], "the pod", "Warning")
			}
		}
	}
	return true
}

// call collects the reasons of recorded events, and those passed to functions with a parameter for a reason.
func (e *ccmEvents) call(x *ast.CallExpr) {
	name := nameOf(x.Fun)
	if s, ok := x.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(strings.ToLower(nameOf(s.X)), "recorder") {
		e.row(x.Args[2], map[string]string{"s": "Service", "node": "Node", "Self": "the pod"}[nameOf(x.Args[0])],
			strings.TrimPrefix(nameOf(x.Args[1]), "EventType"))
		return
	}
	index, ok := e.takers[ofPackage(e.pkg, name)]
	switch {
	case !ok:
	case name == "event":
		e.row(x.Args[index], "Node", "Warning")
	default:
		e.row(x.Args[index], "Service", "Warning")
	}
}

// literal collects the reason of a Finding, or of a Trouble, which makes a cloud unusable.
func (e *ccmEvents) literal(x *ast.CompositeLit, of string) {
	object := map[string]string{"Finding": "Service", "Trouble": "the pod"}[of]
	if object == "" || len(x.Elts) == 0 {
		return
	}
	if e.pkg == "vsphere" && of == "Finding" {
		object = "Node" // this package has no load balancers
	}
	if _, keyed := x.Elts[0].(*ast.KeyValueExpr); !keyed {
		e.row(x.Elts[0], object, "Warning")
	}
	for _, element := range x.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok && nameOf(pair.Key) == "Reason" {
			e.row(pair.Value, object, "Warning")
		}
	}
}

// row adds the row of a reason. It skips reasons in variables, which were collected where they are set.
func (e *ccmEvents) row(reason ast.Expr, object, severity string) {
	e.t.Helper()
	name := nameOf(reason)
	if name == "reason" || name == "Reason" {
		return
	}
	key := e.pkg + "." + name
	if s, ok := reason.(*ast.SelectorExpr); ok {
		key = nameOf(s.X) + "." + name
	}
	c, ok := e.constants[key]
	g := NewWithT(e.t)
	g.Expect(ok).To(BeTrue(), "package %s records an event with a reason that is no constant: %s", e.pkg, key)
	g.Expect(c.meaning).NotTo(BeEmpty(), "the comment of %s says what it means", key)
	g.Expect(object).NotTo(BeEmpty(), "%s is recorded for something else", key)
	e.rows[fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", c.value, c.cloud, object, severity, c.meaning)] = true
}

// nameOf returns the last name of an expression: C for a.b.C.
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
