// SPDX-License-Identifier: Apache-2.0

// Package vmname computes the names of VMs, which are also the host names and the names of Nodes. It is pure: the same
// machine always gets the same name. It depends on the APIs of neither Kubernetes nor VCD.
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

// MaxLength is the maximum length of a name, which is VCD's limit for a computer name and the limit of Linux for a host
// name.
const MaxLength = 63

const (
	// maxOutput limits the output of a template, including surrounding white space, in bytes.
	maxOutput = 512
	// randomLength is the length of .random, the same as in Cluster API.
	randomLength = 5
	// randomLetters excludes vowels and similar characters.
	randomLetters = "bcdfghjklmnpqrstvwxz2456789"
)

// functions are the Sprig functions for short strings. None reads a clock, the environment or randomness, or repeats
// its input.
var functions = []string{
	"abbrev", "adler32sum", "camelcase", "cat", "coalesce", "contains", "default", "empty", "hasPrefix", "hasSuffix",
	"kebabcase", "lower", "nospace",
	"regexReplaceAll", "regexReplaceAllLiteral", "replace", "sha1sum", "sha256sum", "substr", "ternary", "trim",
	"trimAll", "trimPrefix", "trimSuffix", "trunc", "upper",
}

// errTooLong means that the output of a template exceeds maxOutput.
var errTooLong = fmt.Errorf("produces more than %d characters", maxOutput)

// An Object contains the fields of a Kubernetes object that templates can use.
type Object struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// ObjectOf returns the fields of an object that templates can use.
func ObjectOf(obj metav1.Object) Object {
	return Object{
		Name:        obj.GetName(),
		Namespace:   obj.GetNamespace(),
		UID:         string(obj.GetUID()),
		Labels:      obj.GetLabels(),
		Annotations: obj.GetAnnotations(),
	}
}

// fields returns the data for templates under several names: those of manifests (.metadata.name), of Cluster API's
// naming strategies (.name), and of Go (.Name), which templates of CAPVCD use.
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

// An Input holds the values from which the name of a VM is computed.
type Input struct {
	Cluster    string
	Machine    Object
	VCDMachine Object // its UID is the seed of .random
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

// random returns letters and digits that depend on the seed.
func random(seed string) string {
	sum := sha256.Sum256([]byte("vmname/" + seed))
	letters := make([]byte, randomLength)
	for i := range letters {
		letters[i] = randomLetters[int(sum[i])%len(randomLetters)]
	}
	return string(letters)
}

// Render returns the name that a template produces, or the name of the Machine if the template is empty. It fails if
// the template is invalid, or if its output is not a valid name of a VM and a host.
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
	if err := checkNode(t.Root); err != nil {
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

// checkNode rejects nodes that may not terminate, such as loops.
func checkNode(node parse.Node) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := checkNode(child); err != nil {
				return err
			}
		}
		return nil
	case *parse.IfNode:
		return errors.Join(checkNode(n.List), checkNode(n.ElseList))
	case *parse.WithNode:
		return errors.Join(checkNode(n.List), checkNode(n.ElseList))
	case *parse.TextNode, *parse.ActionNode, *parse.CommentNode:
		return nil
	}
	return fmt.Errorf("the naming template must not contain %s: only text, values, if and with are allowed", node)
}

// limited is a buffer that accepts at most maxOutput bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, errTooLong
	}
	return l.Buffer.Write(p)
}

// Check returns an error if name is not valid for a VM, a host and a Node.
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

// ComputerName returns the computer name of a VM in VCD: the part of its name before the first dot.
func ComputerName(name string) string {
	first, _, _ := strings.Cut(name, ".")
	return first
}

// Validate checks that a template produces valid and different names for two example machines.
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
