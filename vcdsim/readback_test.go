// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A writable is an object whose document can be read, changed and written.
type writable struct {
	name     string
	path     string       // path to read, below the site
	at       string       // path to write, if different
	method   string       // PUT, if empty
	document reflect.Type // of VMware's SDK
	provider bool         // the user that reads and writes it
	// ignored are the fields, by path and including everything below, that are accepted but not stored, each with its
	// reason.
	ignored map[string]string
	// prepare marks a document as changed.
	prepare func(document any)
	// oneWay are the fields that cannot be changed back.
	oneWay []string
}

// Written fields are read back or rejected: each field of each document is changed alone, written, and read again.
func TestWrittenFieldsAreReadBack(t *testing.T) {
	tenant := start(t, unrecorded, func(cfg *vcdsim.Config) { cfg.Model = writtenModel() })
	tenant = tenant.user("admin")
	for _, w := range tenant.writables() {
		t.Run(w.name, func(t *testing.T) {
			c := *tenant
			if w.provider {
				c = *tenant.provider()
			}
			c.WithT = NewWithT(t)
			c.version = "39.0"
			dropped := w.dropped(&c)

			used := map[string]bool{}
			for _, path := range slices.Sorted(maps.Keys(dropped)) {
				exception := w.exception(path)
				used[exception] = true
				if exception == "" {
					t.Errorf("%s is dropped silently: %s", path, dropped[path])
				}
			}
			for path := range w.ignored {
				c.Expect(used).To(HaveKey(path), "is stored or rejected: remove the exception")
			}
		})
	}
}

// exception returns the path of the exception that applies to a field, or "".
func (w *writable) exception(path string) string {
	for ; path != ""; path = path[:max(strings.LastIndex(path, "."), 0)] {
		if w.ignored[path] != "" {
			return path
		}
		if list := strings.TrimSuffix(path, "[]"); w.ignored[list] != "" {
			return list
		}
	}
	return ""
}

// dropped returns the fields that are accepted but not stored, with the written and read values.
func (w *writable) dropped(c *client) map[string]string {
	out := map[string]string{}
	for _, leaf := range leavesOf(w.document, nil, "", 0) {
		for _, change := range leaf.changes() {
			before := w.read(c)
			after := w.read(c)
			value := leaf.at(after.Elem())
			if !change(value) || reflect.DeepEqual(before.Interface(), after.Interface()) {
				continue
			}
			wanted := fmt.Sprint(value.Interface())
			if !w.write(c, after) {
				continue
			}
			if got := fmt.Sprint(leaf.at(w.read(c).Elem()).Interface()); got != wanted {
				out[leaf.path] = fmt.Sprintf("wrote %q, read %q", wanted, got)
			}
			if slices.Contains(w.oneWay, leaf.path) {
				continue
			}
			renew(before, w.read(c))
			c.Expect(w.write(c, before)).To(BeTrue(), "%s cannot be written as it was read, after %s", w.name, leaf.path)
		}
	}
	return out
}

// renew updates the version in a document. Without it, the document cannot be written.
func renew(document, now reflect.Value) {
	if document.Elem().FieldByName("Version").IsValid() {
		document.Elem().FieldByName("Version").Set(now.Elem().FieldByName("Version"))
	}
}

func (w *writable) isJSON() bool { return strings.HasPrefix(w.path, "/cloudapi/") }

// read reads the document.
func (w *writable) read(c *client) reflect.Value {
	a := c.get(w.path)
	out := reflect.New(w.document)
	if w.isJSON() {
		c.Expect(json.Unmarshal(a.body, out.Interface())).To(Succeed())
		return out
	}
	c.Expect(xml.Unmarshal(a.body, out.Interface())).To(Succeed())
	return out
}

// write writes the document, and reports whether it was accepted.
func (w *writable) write(c *client, document reflect.Value) bool {
	if w.prepare != nil {
		w.prepare(document.Interface())
	}
	var body []byte
	var err error
	if w.isJSON() {
		body, err = json.Marshal(document.Interface())
	} else {
		body, err = xml.Marshal(document.Interface())
	}
	c.Expect(err).NotTo(HaveOccurred())
	method := http.MethodPut
	if w.method != "" {
		method = w.method
	}
	at := w.path
	if w.at != "" {
		at = w.at
	}
	a := c.call(method, at, string(body))
	if a.status >= http.StatusBadRequest {
		c.Expect(a.status).To(BeNumerically("<", http.StatusInternalServerError), "%s", a.body)
		return false
	}
	task := a.xml
	if task == nil && strings.Contains(a.header.Get("Location"), "/api/task/") {
		task = c.get(a.header.Get("Location")).xml
	}
	if task == nil || task.Name != "Task" {
		return true
	}
	return c.finish(task).Attr("status") == "success"
}

// A leaf is a field of a document without fields of its own. In lists it is in the first element.
type leaf struct {
	path  string
	steps []int // fields; -1 is the first element of a list
	kind  reflect.Kind
	omit  bool // its zero value is not written
}

const deepest = 7

// unwritten are the types of fields that clients do not write.
var unwritten = []string{"Link", "LinkList", "TasksInProgress", "Tasks", "Owner", "VCloudExtension", "Name", "FilesList", "Extension"}

// references are the types of references with the field that identifies the target. The other fields are derived from
// it.
var references = map[string]string{"Reference": "HREF", "OpenApiReference": "ID"}

// leavesOf lists the leaves of a type.
func leavesOf(t reflect.Type, steps []int, path string, depth int) []leaf {
	if depth > deepest {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return leavesOf(t.Elem(), steps, path, depth)
	case reflect.Slice:
		return leavesOf(t.Elem(), append(slices.Clone(steps), -1), path+"[]", depth+1)
	case reflect.Struct:
		var out []leaf
		only := references[t.Name()]
		for i := range t.NumField() {
			f := t.Field(i)
			if only != "" && f.Name != only || only == "" && isIdentity(f) {
				continue
			}
			name := strings.TrimPrefix(path+"."+f.Name, ".")
			if f.Anonymous {
				name = path
			}
			fields := leavesOf(f.Type, append(slices.Clone(steps), i), name, depth+1)
			if len(fields) == 1 && fields[0].path == name {
				fields[0].omit = strings.Contains(string(f.Tag), ",omitempty") && f.Type.Kind() != reflect.Pointer
			}
			out = append(out, fields...)
		}
		return out
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return []leaf{{path: path, steps: steps, kind: t.Kind()}}
	default:
		return nil
	}
}

// identities are the attributes that identify a document.
var identities = []string{
	"href", "id", "type", "operationKey", "OperationKey", "status", "needsCustomization", "required", "ovf:required", "Modified",
}

// isIdentity reports whether a field identifies a document, as opposed to a desired value.
func isIdentity(f reflect.StructField) bool {
	of := f.Type
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if slices.Contains(unwritten, of.Name()) {
		return true
	}
	tag, _, _ := strings.Cut(f.Tag.Get("xml"), ",")
	if f.Tag.Get("json") != "" && tag == "" {
		tag, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		return tag == "id"
	}
	attribute := strings.Contains(f.Tag.Get("xml"), ",attr")
	return strings.HasPrefix(tag, "xmlns") || tag == "ovf:Info" || tag == "Info" || attribute && slices.Contains(identities, tag)
}

// at finds the field in a document, and creates the parent objects.
func (l leaf) at(v reflect.Value) reflect.Value {
	for _, step := range l.steps {
		v = settled(v)
		if step < 0 {
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			v = v.Index(0)
			continue
		}
		v = v.Field(step)
	}
	return settled(v)
}

// settled follows a pointer and allocates its target.
func settled(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v
}

// changes returns ways to change the field. Each reports whether there is a change to write.
func (l leaf) changes() []func(reflect.Value) bool {
	switch l.kind {
	case reflect.String:
		var out []func(reflect.Value) bool
		for _, text := range []string{"changed", "192.168.100.77"} {
			out = append(out, func(v reflect.Value) bool { v.SetString(text); return true })
		}
		return append(out, func(v reflect.Value) bool {
			n, err := strconv.Atoi(v.String())
			v.SetString(strconv.Itoa(n + 1))
			return err == nil
		})
	case reflect.Bool:
		return []func(reflect.Value) bool{func(v reflect.Value) bool {
			v.SetBool(!v.Bool())
			return v.Bool() || !l.omit
		}}
	case reflect.Float64:
		return []func(reflect.Value) bool{func(v reflect.Value) bool { v.SetFloat(v.Float()/2 + 0.25); return true }}
	default:
		return []func(reflect.Value) bool{func(v reflect.Value) bool { v.SetInt(v.Int() + 1); return true }}
	}
}
