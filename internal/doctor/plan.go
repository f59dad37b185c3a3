// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/webhooks"
)

// A Plan is what is to be checked: a cluster and its machines.
type Plan struct {
	Cluster  *infrav1.VCDCluster // nil: no certain cluster
	Name     string              // of the Cluster
	VDC      string              // empty: the only one there is
	Networks []string            // beside those of machines and of the cluster
	Machines []Machines

	// Identity and Secret are what the manifest has to log in with; nil: it has none.
	Identity *infrav1.VCDIdentity
	Secret   *corev1.Secret

	// Others are the identities of the manifest beside that of the cluster, and Logins how to log in as them. [ReadPlan]
	// finds the former; the caller adds the latter.
	Others []Other
	Logins []Login

	zones  []placement.Zone // that the cluster selects, with its own identity
	apart  []string         // names of those that have another identity
	planes int64            // zones that take control planes
	zone   *placement.Zone  // that this part of a plan is for; nil: the VDC of the cluster

	problems []string // of the manifest
	external []string // patches of the ClusterClass that only runtime extensions apply
}

// Machines are some that are alike.
type Machines struct {
	Name  string // of their VCDMachineTemplate
	Count int64
	Spec  infrav1.VCDMachineSpec

	failureDomain string // of all of them; empty: none, or that which Cluster API chooses
	controlPlane  bool
	version       string // of Kubernetes; empty: not known
}

// image is the key of the template of machines.
func (m Machines) image() string { return m.Spec.Catalog + "/" + m.Spec.Template }

// nics returns the NICs of the machines, with the network of each.
func (p Plan) nics(m Machines) []infrav1.NetworkSpec {
	wished := m.Spec.Networks
	if len(wished) == 0 {
		wished = []infrav1.NetworkSpec{{}}
	}
	nics := make([]infrav1.NetworkSpec, 0, len(wished))
	for _, nic := range wished {
		if nic.Name == "" && p.Cluster != nil {
			nic.Name = p.Cluster.Spec.OVDCNetwork
		}
		nic.AddressSource = cmp.Or(nic.AddressSource, infrav1.AddressPool)
		nics = append(nics, nic)
	}
	return nics
}

// networkNames returns the networks of the plan, each once.
func (p Plan) networkNames() []string {
	var names []string
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	if p.Cluster != nil {
		add(p.Cluster.Spec.OVDCNetwork)
	}
	for _, m := range p.Machines {
		for _, nic := range p.nics(m) {
			add(nic.Name)
		}
	}
	for _, name := range p.Networks {
		add(name)
	}
	return names
}

// maxManifest bounds what is read of a manifest.
const maxManifest = 16 << 20

// Sources are where a plan is read from.
type Sources struct {
	Manifests []io.Reader

	// Lookup reads what the manifests lack of a ClusterClass; nil: nothing does.
	Lookup Lookup
}

// ReadPlan reads the plan from manifests with a VCDCluster, VCDMachineTemplates and what makes machines from them, or
// with a Cluster that has a topology. What contradicts itself is reported by [Run].
func ReadPlan(ctx context.Context, from Sources) (Plan, error) {
	m := manifest{
		lookUp:     from.Lookup,
		classes:    map[string]*clusterv1.ClusterClass{},
		templates:  map[string]infrav1.VCDMachineSpec{},
		identities: map[string]*infrav1.VCDIdentity{},
		secrets:    map[string]*corev1.Secret{},
		domains:    map[string]*infrav1.VCDFailureDomain{},
	}
	for _, manifest := range from.Manifests {
		if err := m.read(manifest); err != nil {
			return Plan{}, err
		}
	}
	m.forgetClassTemplates()
	if m.plan.Cluster == nil && m.topology != nil {
		if err := m.addTopology(ctx); err != nil {
			return Plan{}, err
		}
	}
	if m.plan.Cluster == nil {
		return Plan{}, errors.New("the manifest has no VCDCluster")
	}
	return m.plan, m.resolve()
}

// A manifest is what was read of it.
type manifest struct {
	plan      Plan
	lookUp    Lookup             // nil: there is no management cluster
	topology  *clusterv1.Cluster // nil: the Cluster has none
	classes   map[string]*clusterv1.ClusterClass
	objects   []*unstructured.Unstructured // all of them
	templates map[string]infrav1.VCDMachineSpec
	makers    []maker

	identities map[string]*infrav1.VCDIdentity
	secrets    map[string]*corev1.Secret
	domains    map[string]*infrav1.VCDFailureDomain
	zones      []infrav1.VCDDeploymentZone
}

// A maker makes machines from a template.
type maker struct {
	name, template string
	count          int64
	failureDomain  string
	controlPlane   bool
	version        string // of Kubernetes
}

// read adds the objects of one file.
func (m *manifest) read(from io.Reader) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(io.LimitReader(from, maxManifest)))
	for {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the manifest: %w", err)
		}
		if err := m.addDocument(raw); err != nil {
			return err
		}
	}
}

func (m *manifest) addDocument(raw []byte) error {
	object := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON(raw)
	if err == nil && string(content) == "null" {
		return nil // Only comments.
	}
	if err == nil {
		err = object.UnmarshalJSON(content)
	}
	if err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	m.objects = append(m.objects, object)
	return m.add(object)
}

func (m *manifest) add(object *unstructured.Unstructured) error {
	if read, ok := readers[object.GetKind()]; ok {
		if err := read(m, object); err != nil {
			return err
		}
	}
	m.validate(object)
	return nil
}

// validate reports what the webhooks of the manager refuse of an object.
func (m *manifest) validate(object *unstructured.Unstructured) {
	err := webhooks.Validate(object)
	if err == nil {
		return
	}
	name := object.GetKind() + " " + object.GetName()
	invalid := apierrors.APIStatus(nil)
	if !errors.As(err, &invalid) || invalid.Status().Details == nil {
		m.problem("%s: %v", name, err)
		return
	}
	for _, cause := range invalid.Status().Details.Causes {
		m.problem("%s: %s: %s", name, cause.Field, cause.Message)
	}
}

// Kinds of which more than their reader is to be known.
const (
	controlPlaneKind    = "KubeadmControlPlane"
	machineTemplateKind = "VCDMachineTemplate"
)

// readers read the kinds of objects that count.
var readers = map[string]func(*manifest, *unstructured.Unstructured) error{
	"VCDCluster":        (*manifest).addCluster,
	"VCDIdentity":       (*manifest).addIdentity,
	"Secret":            (*manifest).addSecret,
	machineTemplateKind: (*manifest).addTemplate,
	"VCDFailureDomain":  (*manifest).addDomain,
	"VCDDeploymentZone": (*manifest).addZone,
	"Cluster":           (*manifest).addCoreCluster,
	"ClusterClass":      (*manifest).addClass,
	controlPlaneKind: makerAt([]string{"spec", "machineTemplate", "spec", "infrastructureRef", "name"},
		[]string{"spec", "machineTemplate", "infrastructureRef", "name"}),
	"MachineDeployment": makerAt([]string{"spec", "template", "spec", "infrastructureRef", "name"}),
	"MachineSet":        makerAt([]string{"spec", "template", "spec", "infrastructureRef", "name"}),
	"MachinePool":       makerAt([]string{"spec", "template", "spec", "infrastructureRef", "name"}),
}

func (m *manifest) addCluster(object *unstructured.Unstructured) error {
	if version := object.GroupVersionKind().Version; version != infrav1.GroupVersion.Version {
		return fmt.Errorf("VCDCluster %s is of version %s: convert it to %s", object.GetName(), version,
			infrav1.GroupVersion.Version)
	}
	if m.plan.Cluster != nil {
		return errors.New("the manifest has several VCDClusters: check them one by one")
	}
	m.plan.Cluster = &infrav1.VCDCluster{}
	return convert(object, m.plan.Cluster)
}

func (m *manifest) addIdentity(object *unstructured.Unstructured) error {
	m.identities[object.GetName()] = &infrav1.VCDIdentity{}
	return convert(object, m.identities[object.GetName()])
}

func (m *manifest) addTemplate(object *unstructured.Unstructured) error {
	t := &infrav1.VCDMachineTemplate{}
	err := convert(object, t)
	m.templates[object.GetName()] = t.Spec.Template.Spec
	return err
}

// addSecret reads a Secret. Its errors do not show what is in it.
func (m *manifest) addSecret(object *unstructured.Unstructured) error {
	raw, err := object.MarshalJSON()
	secret := &corev1.Secret{Data: map[string][]byte{}}
	if err != nil || json.Unmarshal(raw, secret) != nil {
		return fmt.Errorf("reading Secret %s: its data is not base64", object.GetName())
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	m.secrets[object.GetName()] = secret
	return nil
}

func convert(object *unstructured.Unstructured, into any) error {
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// makerAt reads what makes machines, with the name of their template at one of some paths.
func makerAt(paths ...[]string) func(*manifest, *unstructured.Unstructured) error {
	return func(m *manifest, object *unstructured.Unstructured) error {
		m.addMaker(object, paths)
		return nil
	}
}

func (m *manifest) addMaker(object *unstructured.Unstructured, paths [][]string) {
	count, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if err != nil || !found {
		count = 1
	}
	domain, _, _ := unstructured.NestedString(object.Object, "spec", "template", "spec", "failureDomain")
	version, _, _ := unstructured.NestedString(object.Object, "spec", "template", "spec", "version")
	if object.GetKind() == controlPlaneKind {
		version, _, _ = unstructured.NestedString(object.Object, "spec", "version")
	}
	for _, path := range paths {
		if name, found, err := unstructured.NestedString(object.Object, path...); err == nil && found {
			m.makers = append(m.makers, maker{
				name:          object.GetKind() + " " + object.GetName(),
				template:      name,
				count:         count,
				failureDomain: domain,
				controlPlane:  object.GetKind() == controlPlaneKind,
				version:       version,
			})
			return
		}
	}
}

func (m *manifest) problem(format string, args ...any) {
	m.plan.problems = append(m.plan.problems, fmt.Sprintf(format, args...))
}

// checkControlPlanes reports control planes that Cluster API or etcd refuse.
func (m *manifest) checkControlPlanes() {
	var names []string
	for _, maker := range m.makers {
		if !maker.controlPlane {
			continue
		}
		names = append(names, maker.name)
		if maker.count%2 == 0 && maker.count > 0 {
			m.problem("%s has %d replicas: etcd on control planes needs an odd number", maker.name, maker.count)
		}
	}
	if len(names) > 1 {
		m.problem("a cluster has one control plane, and the manifest has %s", strings.Join(names, " and "))
	}
}

// resolve finds the template of each maker, and the zones of the cluster.
func (m *manifest) resolve() error {
	used := map[string]bool{}
	for _, maker := range m.makers {
		spec, ok := m.templates[maker.template]
		if !ok {
			m.problem("%s is made from VCDMachineTemplate %q, which the manifest has not", maker.name, maker.template)
			continue
		}
		used[maker.template] = true
		m.plan.Machines = append(m.plan.Machines, Machines{
			Name:          maker.template,
			Count:         maker.count,
			Spec:          spec,
			failureDomain: maker.failureDomain,
			controlPlane:  maker.controlPlane,
			version:       maker.version,
		})
	}
	m.checkControlPlanes()
	for _, name := range slices.Sorted(maps.Keys(m.templates)) {
		if !used[name] {
			m.plan.Machines = append(m.plan.Machines, Machines{Name: name, Spec: m.templates[name]})
		}
	}
	m.plan.Name = cmp.Or(m.plan.Name, m.plan.Cluster.Name)
	if identity := m.identities[m.plan.Cluster.Spec.IdentityRef.Name]; identity != nil {
		m.plan.Identity = identity
		m.plan.Secret = m.secrets[identity.Spec.SecretRef.Name]
	}
	m.plan.VDC = strings.TrimSpace(m.plan.Cluster.Spec.OVDC)
	m.addOthers()
	return m.selectZones()
}
