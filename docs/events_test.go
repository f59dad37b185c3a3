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

// recorded is an event of the manager: who has it, and what its function's comment says of it.
type recorded struct{ reason, objects, severity, meaning string }

func eventsPage(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join("..", "controllers", "*", "events.go"))
	g.Expect(err).NotTo(HaveOccurred())
	shared, err := filepath.Glob(filepath.Join("..", "controllers", "internal", "*", "events.go"))
	g.Expect(err).NotTo(HaveOccurred())
	reasons := map[string]string{}
	for _, d := range documentedConstants(t, "Reason") {
		reasons[d.name] = d.value
	}
	var rows []string
	for _, name := range append(files, shared...) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		g.Expect(err).NotTo(HaveOccurred())
		for _, decl := range file.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if e, ok := eventOf(function, reasons); ok {
				g.Expect(e.meaning).NotTo(BeEmpty(), "the comment of %s says what it records", function.Name)
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", e.reason, e.objects, e.severity, e.meaning))
			}
		}
	}
	g.Expect(len(rows)).To(BeNumerically(">", 30))
	slices.Sort(rows)
	return "# Events\n\n" + generated + `
` + "```sh\nkubectl get events --field-selector involvedObject.name=demo      # of one object\n```" + `

Besides these, each condition that becomes False for a problem is an event with [its reason](conditions.md#reasons). Those of
the cloud controller manager are on [its page](../guides/ccm-troubleshooting.md#reasons).

| event | of | type | it is recorded |
|---|---|---|---|
` + strings.Join(rows, "")
}

var records = regexp.MustCompile(`^\w+ (records )`)

// eventOf returns the event that a function records, if it does.
func eventOf(function *ast.FuncDecl, reasons map[string]string) (recorded, bool) {
	e := recorded{meaning: oneLine(function.Doc.Text()), objects: "VCDCluster, VCDMachine"}
	if !records.MatchString(e.meaning) {
		e.meaning = ""
	}
	meaning, _, _ := strings.Cut(records.ReplaceAllString(e.meaning, ""), "; ") // Parameters are behind it.
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
		called, ok := call.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case called.Sel.Name == "Happened":
			e.reason, e.severity = text(call.Args[2], reasons), "Normal"
		case called.Sel.Name == "Eventf":
			e.reason, e.severity = text(call.Args[3], reasons), "Warning"
		}
		return true
	})
	return e, e.reason != ""
}

// text returns the value of a literal, or of a reason of the API.
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
