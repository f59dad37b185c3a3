package shape_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../.."

const (
	// maxMethods is for any type, maxScopeMethods for what the phases of a reconciler share.
	maxMethods, maxScopeMethods = 40, 25
	// maxFiles is how many files without tests a package of controllers/ has.
	maxFiles = 15
	// maxP95 is how many lines the 95th percentile of functions may have.
	maxP95 = 30
)

// tree is what the tests need to know of the sources that are neither tests nor generated.
type tree struct {
	methods map[string]int // by folder and type
	files   map[string]int // by folder
	lengths []int          // of functions, in lines
}

func TestTypesAreSmall(t *testing.T) {
	g := NewWithT(t)

	methods := read(t).methods

	g.Expect(methods).NotTo(BeEmpty())
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		limit := maxMethods
		if strings.HasPrefix(name, "controllers/") && strings.HasSuffix(strings.ToLower(name), "scope") {
			limit = maxScopeMethods
		}
		g.Expect(methods[name]).To(BeNumerically("<=", limit),
			"methods of %s: give what it does by itself a type of its own", name)
	}
}

func TestPackagesOfControllersAreSmall(t *testing.T) {
	g := NewWithT(t)

	for folder, n := range read(t).files {
		if strings.HasPrefix(folder, "controllers") || folder == "internal/phases" {
			g.Expect(n).To(BeNumerically("<=", maxFiles), "files in %s: split the package by noun", folder)
		}
	}
}

func TestFunctionsAreShort(t *testing.T) {
	g := NewWithT(t)
	lengths := read(t).lengths
	slices.Sort(lengths)

	g.Expect(lengths[len(lengths)*95/100]).To(BeNumerically("<=", maxP95),
		"lines of the 95th percentile of %d functions", len(lengths))
}

// TestTheLimitsWork shows that a tree that breaks the limits is measured as such.
func TestTheLimitsWork(t *testing.T) {
	g := NewWithT(t)
	set, found := token.NewFileSet(), newTree()
	source := "package p\n\ntype box[T any] struct{}\n\nfunc (b *box[T]) one() {\n}\n\nfunc (box[T]) two() {}\n"
	file, err := parser.ParseFile(set, "box.go", source, 0)
	g.Expect(err).NotTo(HaveOccurred())

	found.add(set, "p", file)

	g.Expect(found.methods).To(Equal(map[string]int{"p.box": 2}))
	g.Expect(found.files).To(Equal(map[string]int{"p": 1}))
	g.Expect(found.lengths).To(Equal([]int{2, 1}))
}

func newTree() tree {
	return tree{methods: map[string]int{}, files: map[string]int{}}
}

func read(t *testing.T) tree {
	t.Helper()
	found, set := newTree(), token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(path, entry.Name()):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parsing: %w", err)
		}
		if folder, err := filepath.Rel(root, filepath.Dir(path)); err == nil && !ast.IsGenerated(file) {
			found.add(set, filepath.ToSlash(folder), file)
		}
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

// skipped reports whether a folder holds nothing of ours: what is built, caches, version control.
func skipped(path, name string) bool {
	return path != root && (strings.HasPrefix(name, ".") || name == "out" || name == "testdata")
}

func (tr *tree) add(set *token.FileSet, folder string, file *ast.File) {
	tr.files[folder]++
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		tr.lengths = append(tr.lengths, set.Position(f.End()).Line-set.Position(f.Pos()).Line+1)
		if f.Recv != nil {
			tr.methods[folder+"."+receiver(f.Recv.List[0].Type)]++
		}
	}
}

// receiver returns the name of the type of a receiver, without pointers and type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
