// SPDX-License-Identifier: Apache-2.0

// Package vmname computes the names of VMs, which are host names and names of Nodes too. It is pure: the same machine
// always gets the same name. It knows neither Kubernetes' API nor VCD's.
package vmname

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode"

	"github.com/Masterminds/sprig/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxLength is how long a name may be: VCD's limit of a computer name, and Linux' of a host name.
const MaxLength = 63

const (
	// maxOutput bounds what a template may write, surrounding blanks included.
	maxOutput = 512
	// randomLength is the length of .random, as Cluster API's.
	randomLength = 5
	// randomLetters omit vowels and similar characters.
	randomLetters = "bcdfghjklmnpqrstvwxz2456789"
)

// functions are those of Sprig that work on short strings: none reads a clock, the environment or randomness, or
// repeats its input.
var functions = []string{
	"abbrev", "adler32sum", "camelcase", "cat", "coalesce", "contains", "default", "empty", "hasPrefix", "hasSuffix",
	"kebabcase", "lower", "nospace",
	"regexReplaceAll", "regexReplaceAllLiteral", "replace", "sha1sum", "sha256sum", "substr", "ternary", "trim",
	"trimAll", "trimPrefix", "trimSuffix", "trunc", "upper",
}

// errTooLong means that a template writes more than a name can hold.
var errTooLong = fmt.Errorf("produces more than %d characters", maxOutput)

// An Object is what templates see of a Kubernetes object.
type Object struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// ObjectOf returns what names are computed from of an object.
func ObjectOf(obj metav1.Object) Object {
	return Object{
		Name:        obj.GetName(),
		Namespace:   obj.GetNamespace(),
		UID:         string(obj.GetUID()),
		Labels:      obj.GetLabels(),
		Annotations: obj.GetAnnotations(),
	}
}

// fields returns what templates see, in the words of manifests (.metadata.name), of Cluster API's naming strategies
// (.name) and of Go (.Name), which templates of CAPVCD use.
func (o Object) fields() map[string]any {
	labels := o.Labels
	annotations := o.Annotations
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	return map[string]any{
		"metadata": map[string]any{
			"name":        o.Name,
			"namespace":   o.Namespace,
			"uid":         o.UID,
			"labels":      labels,
			"annotations": annotations,
		},
		"name":        o.Name,
		"namespace":   o.Namespace,
		"Name":        o.Name,
		"Namespace":   o.Namespace,
		"UID":         o.UID,
		"Labels":      labels,
		"Annotations": annotations,
	}
}

// An Input is what the name of a VM is computed from.
type Input struct {
	Cluster    string
	Machine    Object
	VCDMachine Object // its UID decides what .random is
}

func (in Input) data() map[string]any {
	named := func(label string) map[string]any {
		return map[string]any{"name": in.Machine.Labels["cluster.x-k8s.io/"+label]}
	}
	return map[string]any{
		"cluster":             map[string]any{"name": in.Cluster, "namespace": in.Machine.Namespace},
		"machine":             in.Machine.fields(),
		"vcdMachine":          in.VCDMachine.fields(),
		"machineDeployment":   named("deployment-name"),
		"machineSet":          named("set-name"),
		"kubeadmControlPlane": named("control-plane-name"),
		"random":              random(in.VCDMachine.UID),
	}
}

// random returns letters and digits that are others for each seed.
func random(seed string) string {
	sum := sha256.Sum256([]byte("vmname/" + seed))
	letters := make([]byte, randomLength)
	for i := range letters {
		letters[i] = randomLetters[int(sum[i])%len(randomLetters)]
	}
	return string(letters)
}

// Render returns the name that a template gives, or the Machine's own for the empty template. It fails if the template
// cannot be used, or its answer cannot be the name of a VM and a host.
func Render(text string, in Input) (string, error) {
	name := in.Machine.Name
	if text != "" {
		var err error
		if name, err = execute(text, in); err != nil {
			return "", err
		}
	}
	return name, Check(name)
}

func execute(text string, in Input) (string, error) {
	t, err := template.New("vmNamingTemplate").Option("missingkey=error").Funcs(allowed()).Parse(text)
	if err != nil {
		return "", fmt.Errorf("parsing the naming template: %w", err)
	}
	if len(t.Templates()) > 1 {
		return "", errors.New("the naming template must not define templates")
	}
	if err := simple(t.Root); err != nil {
		return "", err
	}
	out := &limited{}
	if err := t.Execute(out, in.data()); err != nil {
		return "", fmt.Errorf("executing the naming template: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}

func allowed() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	some := template.FuncMap{}
	for _, name := range functions {
		some[name] = all[name]
	}
	return some
}

// simple refuses what can go on for ever.
func simple(node parse.Node) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := simple(child); err != nil {
				return err
			}
		}
		return nil
	case *parse.IfNode:
		return errors.Join(simple(n.List), simple(n.ElseList))
	case *parse.WithNode:
		return errors.Join(simple(n.List), simple(n.ElseList))
	case *parse.TextNode, *parse.ActionNode, *parse.CommentNode:
		return nil
	}
	return fmt.Errorf("the naming template must not contain %s: only text, values, if and with are allowed", node)
}

// limited is a buffer that takes no more than a name can be.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, errTooLong
	}
	return l.Buffer.Write(p)
}

// Check returns why name cannot be that of a VM, a host and a Node.
func Check(name string) error {
	switch problems := validation.IsDNS1123Subdomain(name); {
	case len(name) > MaxLength:
		return fmt.Errorf("%q is longer than the %d characters of a host name", name, MaxLength)
	case len(problems) > 0:
		return fmt.Errorf("%q cannot be the name of a VM and a host: %s", name, strings.Join(problems, ", "))
	case !strings.ContainsFunc(name, unicode.IsLetter):
		return fmt.Errorf("%q cannot be the name of a VM and a host: it must contain a letter", name)
	}
	return nil
}

// ComputerName returns what VCD calls the host of a VM: the first part of its name.
func ComputerName(name string) string {
	first, _, _ := strings.Cut(name, ".")
	return first
}

// Validate checks that a template can be used for many machines, by the names of two examples.
func Validate(text string) error {
	one, err := Render(text, example("demo-md-0-x7k2p-4sgzc", "0f7b2c7e-6b0c-4a51-8e06-5a3ff9e3b1a1"))
	if err != nil {
		return fmt.Errorf("produces no name for a machine such as demo-md-0-x7k2p-4sgzc: %w", err)
	}
	other, err := Render(text, example("demo-md-0-x7k2p-9vbnm", "5e0cdb8a-3a5c-4f5b-9d4c-9a3cf2f4d7b2"))
	if err == nil && one == other {
		return fmt.Errorf("produces the same name for all machines, such as %q: use .machine.name or .random", one)
	}
	return nil
}

func example(machine, uid string) Input {
	labels := map[string]string{
		"cluster.x-k8s.io/cluster-name":       "demo",
		"cluster.x-k8s.io/deployment-name":    "demo-md-0",
		"cluster.x-k8s.io/set-name":           "demo-md-0-x7k2p",
		"cluster.x-k8s.io/control-plane-name": "demo-control-plane",
	}
	object := Object{Name: machine, Namespace: "default", UID: uid, Labels: labels}
	return Input{Cluster: "demo", Machine: object, VCDMachine: object}
}
