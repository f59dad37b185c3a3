// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// readPage returns the content of a page by its path in the repository.
func readPage(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

var (
	// inline matches code in a sentence; fenced matches code blocks.
	inline = regexp.MustCompile("`([^`\n]+)`")
	shell  = regexp.MustCompile("(?ms)^ *```(?:sh|shell|bash)\n(.*?)^ *```$")
	target = regexp.MustCompile(`(?m)^ *make ((?:[a-z][a-z0-9-]*\b ?)+)`)
	rule   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	file   = regexp.MustCompile(
		`^(?:addons|api|cmd|config|controllers|cpi|docs|hack|internal|templates|test|vcdsim)/[\w./-]*$`)
	annotation = regexp.MustCompile(`infrastructure\.cluster\.x-k8s\.io/([a-z][a-z0-9-]*[a-z0-9])`)
	metric     = regexp.MustCompile(`\bcapvcd_[a-z_]+`)
	camel      = regexp.MustCompile(`^[A-Z][a-z0-9]+(?:[A-Z]+[a-z0-9]*)+$`)
	ourFlag    = regexp.MustCompile(`^--([a-z][a-z0-9-]+)(?:=.*)?$`)
	configKey  = regexp.MustCompile(`^(?:vcd|loadbalancer|nodes)\.[a-z]\w*(?:\.\w+)?$`)
	// command matches a call of one of the project's programs.
	verb      = regexp.MustCompile(`\bvcdctl ([a-z][a-z-]*)`)
	command   = regexp.MustCompile(`(?:\bvcdsim|\./cmd/\w+|cloud-provider-for-cloud-director|go run \.) [^|;&\n]*`)
	fieldPath = regexp.MustCompile(`^(?:(VCD\w+)\.)?((?:spec|status)(?:\.\w+(?:\[\w*\])?)+)$`)
)

// diagram matches a code block without a language; goFile matches the name of a Go file, without a folder.
var (
	diagram = regexp.MustCompile("(?ms)^```\n(.*?)^```$")
	goFile  = regexp.MustCompile(`(?:^|[^\w./])([a-z]\w*\.go)\b`)
)

func TestFilesInDiagramsExist(t *testing.T) {
	g := NewWithT(t)
	names := map[string]bool{}
	g.Expect(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		names[filepath.Base(path)] = true
		return err
	})).To(Succeed())

	found := 0
	for _, block := range diagram.FindAllStringSubmatch(readPage(t, "docs/concepts/architecture.md"), -1) {
		for _, file := range goFile.FindAllStringSubmatch(block[1], -1) {
			found++
			g.Expect(names).To(HaveKey(file[1]))
		}
	}

	g.Expect(found).To(BeNumerically(">", 40))
}

// spans returns the inline code of a page.
func spans(page string) []string {
	var all []string
	for _, match := range inline.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		all = append(all, match[1])
	}
	return all
}

// blocks returns the shell blocks of a page.
func blocks(page string) []string {
	var all []string
	for _, match := range shell.FindAllStringSubmatch(page, -1) {
		all = append(all, match[1])
	}
	return all
}

// commands returns the code of a page that may contain commands: blocks and inline code.
func commands(page string) string {
	return strings.Join(append(blocks(page), spans(page)...), "\n")
}

// sources returns the text of the repository's files that define names.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	NewWithT(t).Expect(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"docs", "out", ".git"}, d.Name()):
			return fs.SkipDir
		case slices.Contains([]string{".go", ".yaml", ".sh", ".json"}, filepath.Ext(path)):
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		}
		return nil
	})).To(Succeed())
	return all.String()
}

// TestNamesInPagesExist checks that names in pages exist in the code, so that renamed or removed names do not remain in
// pages.
func TestNamesInPagesExist(t *testing.T) {
	code := sources(t)
	makefile := readPage(t, "Makefile")
	vcdctl := readPage(t, "docs/reference/vcdctl.md")
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`).FindAllString(code, -1) {
		words[word] = true
	}
	var targets []string
	for _, match := range rule.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, match[1])
	}
	for _, page := range allPages(t) {
		t.Run(page, func(t *testing.T) {
			text := readPage(t, page)
			unknown := map[string][]string{
				"make targets":                    unknownTargets(text, targets),
				"files":                           unknownFiles(text),
				"annotations":                     unknownAnnotations(text, code),
				"metrics":                         unknownMetrics(t, text),
				"conditions, reasons, kinds":      unknownWords(text, words),
				"flags":                           unknownFlags(text, code),
				"commands of vcdctl":              unknownVerbs(text, vcdctl),
				"keys of the CCM's configuration": unknownKeys(t, text),
			}
			if filepath.Base(page) != "capvcd-fields.md" { // another test checks that page
				unknown["fields"] = unknownFields(text)
			}
			maps.DeleteFunc(unknown, func(_ string, names []string) bool { return len(names) == 0 })

			NewWithT(t).Expect(unknown).To(BeEmpty())
		})
	}
}

func unknownTargets(page string, known []string) []string {
	var unknown []string
	for _, match := range target.FindAllStringSubmatch(commands(page), -1) {
		for _, name := range strings.Fields(match[1]) {
			if !slices.Contains(known, name) && !slices.Contains(foreignTargets, name) {
				unknown = append(unknown, name)
			}
		}
	}
	return unknown
}

func unknownFiles(page string) []string {
	var unknown []string
	for _, span := range spans(page) {
		if !file.MatchString(span) {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, span)); err != nil {
			unknown = append(unknown, span)
		}
	}
	return unknown
}

func unknownAnnotations(page, code string) []string {
	var unknown []string
	for _, match := range annotation.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(code, match[0]) && !strings.HasPrefix(match[1], "v1beta") {
			unknown = append(unknown, match[0])
		}
	}
	return unknown
}

func unknownMetrics(t *testing.T, page string) []string {
	t.Helper()
	known := readPage(t, "docs/reference/metrics.md") + readPage(t, "config/monitoring/alerts.yaml")
	var unknown []string
	for _, name := range metric.FindAllString(page, -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count", "_"} {
			name = strings.TrimSuffix(name, suffix)
		}
		if !strings.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func unknownWords(page string, known map[string]bool) []string {
	var unknown []string
	for _, span := range spans(page) {
		if camel.MatchString(span) && !known[span] && !slices.Contains(foreignWords, span) {
			unknown = append(unknown, span)
		}
	}
	return unknown
}

// unknownVerbs returns the commands of vcdctl on a page that its reference does not describe.
func unknownVerbs(page, reference string) []string {
	var unknown []string
	for _, match := range verb.FindAllStringSubmatch(commands(page), -1) {
		if !strings.Contains(reference, "\n## "+match[1]+"\n") {
			unknown = append(unknown, match[1])
		}
	}
	return unknown
}

func unknownFlags(page, code string) []string {
	var unknown []string
	candidates := spans(page)
	for _, call := range command.FindAllString(commands(page), -1) {
		candidates = append(candidates, strings.Fields(call)...)
	}
	for _, span := range candidates {
		match := ourFlag.FindStringSubmatch(span)
		if match == nil || slices.Contains(foreignFlags, match[1]) {
			continue
		}
		if !strings.Contains(code, `"`+match[1]+`"`) && !strings.Contains(code, "--"+match[1]) {
			unknown = append(unknown, span)
		}
	}
	return unknown
}

func unknownKeys(t *testing.T, page string) []string {
	t.Helper()
	known := readPage(t, "docs/reference/ccm-config.md") + readPage(t, "docs/reference/vsphere-config.md")
	var unknown []string
	for _, span := range spans(page) {
		if configKey.MatchString(span) && !strings.Contains(known, "`"+span) {
			unknown = append(unknown, span)
		}
	}
	return unknown
}

// kinds are the types whose fields pages mention.
var kinds = []any{
	infrav1.VCDCluster{},
	infrav1.VCDClusterTemplate{},
	infrav1.VCDMachine{},
	infrav1.VCDMachineTemplate{},
	infrav1.VCDIdentity{},
	infrav1.VCDClusterIdentity{},
	infrav1.VCDFailureDomain{},
	infrav1.VCDDeploymentZone{},
	infrav1.VCDRemediation{},
	infrav1.VCDRemediationTemplate{},
	clusterv1.Cluster{},
	clusterv1.Machine{},
	clusterv1.MachineDeployment{},
	clusterv1.MachineHealthCheck{},
	clusterv1.ClusterClass{},
	controlplanev1.KubeadmControlPlane{},
	addonsv1.ClusterResourceSet{},
	corev1.Node{},
	corev1.Service{},
	corev1.Pod{},
	corev1.Secret{},
	corev1.ConfigMap{},
	corev1.PersistentVolume{},
	appsv1.Deployment{},
	storagev1.VolumeAttachment{},
	storagev1.StorageClass{},
	networkingv1.NetworkPolicy{},
	rbacv1.ClusterRole{},
	discoveryv1.EndpointSlice{},
}

func unknownFields(page string) []string {
	var unknown []string
	for _, span := range spans(page) {
		match := fieldPath.FindStringSubmatch(span)
		if match == nil || slices.Contains(foreignFields, span) {
			continue
		}
		path := strings.Split(match[2], ".")
		if !slices.ContainsFunc(kinds, func(kind any) bool {
			of := reflect.TypeOf(kind)
			return (match[1] == "" || of.Name() == match[1]) && hasField(of, path)
		}) {
			unknown = append(unknown, span)
		}
	}
	return unknown
}

// hasField reports whether a type has a field with the given JSON path.
func hasField(of reflect.Type, path []string) bool {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
		of = of.Elem()
	}
	if len(path) == 0 || of.Kind() == reflect.Map {
		return true
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	name, _, _ := strings.Cut(path[0], "[")
	for field := range of.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name && hasField(field.Type, path[1:]) || tag == "" && field.Anonymous && hasField(field.Type, path) {
			return true
		}
	}
	return false
}
