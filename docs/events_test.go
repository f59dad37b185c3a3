// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// recorded is an event of the manager: the kinds that have it, and its meaning from the comment of its function.
type recorded struct{ reason, objects, severity, meaning string }

func eventsPage(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	reasons := map[string]string{}
	for _, d := range documentedConstants(t, "Reason") {
		reasons[d.name] = d.value
	}
	var rows []string
	for _, function := range recorders(t) {
		e := eventOf(function, reasons)
		g.Expect(e.reason).NotTo(BeEmpty(), "%s records an event with a reason that is no constant", function.Name)
		g.Expect(e.meaning).NotTo(BeEmpty(), "the comment of %s begins with: %s records that", function.Name, function.Name)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", e.reason, e.objects, e.severity, e.meaning))
	}
	g.Expect(len(rows)).To(BeNumerically(">", 30))
	slices.Sort(rows)
	return "# Events\n\n" + generated + `
` + "```sh\nkubectl get events --field-selector involvedObject.name=demo      # of one object\n```" + `

## Events of the manager

Besides these, each condition that becomes False or Unknown for a problem is an event of type Warning with [its
reason](conditions.md#reasons).

| event | of | type | meaning |
|---|---|---|---|
` + strings.Join(rows, "") + `
## Events of the cloud controller manager

These are in the workload cluster; those of the pod are in the namespace of the Deployment. What to do about them:
[troubleshooting](../networking/troubleshoot-load-balancers.md#reasons). While the cloud cannot be used, Services that wait have the pod's event,
too. Kubernetes' own controllers in the same program record ` + "`EnsuringLoadBalancer`, `EnsuredLoadBalancer`, `SyncLoadBalancerFailed`" + `
and more of their kind for Services, and ` + "`Synced`" + ` for Nodes.

| event | cloud | of | type | meaning |
|---|---|---|---|---|
` + ccmEventRows(t)
}

// recorders returns the functions of the manager that record events, except for events about conditions.
func recorders(t *testing.T) (functions []*ast.FuncDecl) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(filepath.WalkDir(filepath.Join("..", "controllers"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			calls := 0
			ast.Inspect(function, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && recordsEvent(call) {
					calls++
				}
				return true
			})
			g.Expect(calls).To(BeNumerically("<=", 1), "%s in %s records two events: make it two functions",
				function.Name, path)
			if calls == 1 {
				functions = append(functions, function)
			}
		}
		return nil
	})).To(Succeed())
	return functions
}

func recordsEvent(call *ast.CallExpr) bool {
	name := nameOf(call.Fun)
	return name == "Happened" || name == "Eventf"
}

var records = regexp.MustCompile(`^\w+ (records that )`)

// eventOf returns the event that a function records.
func eventOf(function *ast.FuncDecl, reasons map[string]string) recorded {
	e := recorded{meaning: oneLine(function.Doc.Text()), objects: "VCDCluster, VCDMachine"}
	if !records.MatchString(e.meaning) {
		e.meaning = ""
	}
	meaning, _, _ := strings.Cut(records.ReplaceAllString(e.meaning, ""), "; ") // Parameters follow.
	e.meaning = strings.TrimSuffix(meaning, ".")
	for _, param := range function.Type.Params.List {
		pointer, ok := param.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		kind, ok := pointer.X.(*ast.SelectorExpr)
		if !ok || !strings.HasPrefix(kind.Sel.Name, "VCD") {
			continue
		}
		e.objects = kind.Sel.Name
		e.meaning = regexp.MustCompile(`\b`+param.Names[0].Name+`\b`).ReplaceAllString(e.meaning, "the "+e.objects)
	}
	ast.Inspect(function, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch nameOf(call.Fun) {
		case "Happened":
			e.reason = text(call.Args[2], reasons)
			e.severity = "Normal"
		case "Eventf":
			e.reason = text(call.Args[3], reasons)
			e.severity = "Warning"
		}
		return true
	})
	return e
}

// text returns the value of a string literal or of a reason constant of the API.
func text(of ast.Expr, reasons map[string]string) string {
	switch x := of.(type) {
	case *ast.BasicLit:
		value, _ := strconv.Unquote(x.Value)
		return value
	case *ast.SelectorExpr:
		return reasons[x.Sel.Name]
	}
	return ""
}
