// SPDX-License-Identifier: Apache-2.0

package testtime_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

// patient are the functions that set the timeout of a package.
var patient = []string{"testtime.Main", "testtime.BePatient", "controllertest.Main"}

// TestEveryEventuallyUsesTheSharedTimeout checks all tests of the repository. Every Eventually must wait for at least a
// minute, by its own timeout or by the default of a package whose TestMain calls Main.
func TestEveryEventuallyUsesTheSharedTimeout(t *testing.T) {
	g := NewWithT(t)
	folders := map[string]*folder{}
	g.Expect(filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "out" ||
			d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		in := filepath.Dir(path)
		if folders[in] == nil {
			folders[in] = &folder{times: map[string]time.Duration{}}
		}
		return folders[in].read(path)
	})).To(Succeed())

	waits := 0
	impatient := []string{}
	for _, f := range folders {
		waits += len(f.waits)
		impatient = append(impatient, f.impatient()...)
	}
	g.Expect(impatient).To(BeEmpty())
	g.Expect(waits).To(BeNumerically(">", 200), "they were not found")
}

// A folder has the timeouts of its tests.
type folder struct {
	files   token.FileSet
	patient bool                     // its TestMain sets the timeout
	times   map[string]time.Duration // constants
	waits   []wait
}

// A wait is an Eventually. Its time is nil if it uses the default of the package.
type wait struct {
	at   string
	time ast.Expr
}

func (f *folder) read(path string) error {
	file, err := parser.ParseFile(&f.files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	timed := map[*ast.CallExpr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					if d, ok := f.duration(n.Values[i]); ok {
						f.times[name.Name] = d
					}
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(patient, x.Name+"."+n.Sel.Name) {
				f.patient = true
			}
		case *ast.CallExpr:
			f.call(n, timed)
		}
		return true
	})
	return nil
}

// call records an Eventually and the timeout of a chained call. Outer calls are visited first.
func (f *folder) call(n *ast.CallExpr, timed map[*ast.CallExpr]bool) {
	switch called(n) {
	case "WithTimeout", "WithPolling":
		for inner := n; ; {
			selected, ok := inner.Fun.(*ast.SelectorExpr)
			if !ok {
				return
			}
			if inner, ok = selected.X.(*ast.CallExpr); !ok {
				return
			}
			if called(inner) == "Eventually" && called(n) == "WithTimeout" {
				timed[inner] = true
				f.waits = append(f.waits, wait{f.files.Position(n.Pos()).String(), n.Args[0]})
			}
		}
	case "Eventually":
		if timed[n] {
			return
		}
		w := wait{at: f.files.Position(n.Pos()).String()}
		if len(n.Args) > 1 {
			w.time = n.Args[1]
		}
		f.waits = append(f.waits, w)
	}
}

func called(n *ast.CallExpr) string {
	switch fun := n.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

func (f *folder) impatient() (at []string) {
	for _, w := range f.waits {
		if w.time == nil && !f.patient {
			at = append(at, w.at+" waits as long as Gomega does by itself")
		}
		if d, ok := f.duration(w.time); ok && d < testtime.Patience {
			at = append(at, fmt.Sprintf("%s waits for %s only", w.at, d))
		}
	}
	return at
}

// duration evaluates "5s", 5*time.Second, or a constant. Other expressions are unknown.
func (f *folder) duration(e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return 0, false
		}
		d, err := time.ParseDuration(text)
		return d, err == nil
	case *ast.Ident:
		d, ok := f.times[e.Name]
		return d, ok
	case *ast.SelectorExpr:
		d, ok := map[string]time.Duration{
			"Minute":      time.Minute,
			"Second":      time.Second,
			"Millisecond": time.Millisecond,
		}[e.Sel.Name]
		return d, ok
	case *ast.BinaryExpr:
		times, ok := e.X.(*ast.BasicLit)
		unit, known := f.duration(e.Y)
		if !ok || !known || e.Op != token.MUL {
			return 0, false
		}
		n, err := strconv.Atoi(times.Value)
		return time.Duration(n) * unit, err == nil
	}
	return 0, false
}
