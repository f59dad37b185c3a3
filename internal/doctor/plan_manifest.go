// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/webhooks"
)

// A manifest holds the objects of a manifest that matter for a plan.
type manifest struct {
	cluster     *infrav1.VCDCluster          // nil: not found yet
	clusterName string                       // name of the Cluster; empty: no Cluster
	topology    *clusterv1.Cluster           // nil: the Cluster has no topology
	objects     []*unstructured.Unstructured // all objects, as read
	problems    []string                     // reasons why the manager would reject objects

	// By name.
	classes    map[string]*clusterv1.ClusterClass
	templates  map[string]infrav1.VCDMachineSpec
	identities map[string]*infrav1.VCDIdentity
	secrets    map[string]*corev1.Secret
	domains    map[string]*infrav1.VCDFailureDomain

	groups []machineGroup
	zones  []infrav1.VCDDeploymentZone
}

func newManifest() *manifest {
	return &manifest{
		classes:    map[string]*clusterv1.ClusterClass{},
		templates:  map[string]infrav1.VCDMachineSpec{},
		identities: map[string]*infrav1.VCDIdentity{},
		secrets:    map[string]*corev1.Secret{},
		domains:    map[string]*infrav1.VCDFailureDomain{},
	}
}

// A machineGroup is an object that creates machines from a template, such as a MachineDeployment.
type machineGroup struct {
	name, template string
	count          int64
	failureDomain  string
	controlPlane   bool
	version        string // Kubernetes version
	apiServerArgs  map[string][]string
}

// maxManifest limits the size of a manifest, in bytes.
const maxManifest = 16 << 20

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
		return nil // only comments
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

// validate adds a problem for each error for which the manager's webhooks would reject an object.
func (m *manifest) validate(object *unstructured.Unstructured) {
	err := webhooks.Validate(object)
	if err == nil {
		return
	}
	name := object.GetKind() + " " + object.GetName()
	invalid := apierrors.APIStatus(nil)
	if !errors.As(err, &invalid) || invalid.Status().Details == nil {
		m.refuse("%s: %v", name, err)
		return
	}
	for _, cause := range invalid.Status().Details.Causes {
		m.refuse("%s: %s: %s", name, cause.Field, cause.Message)
	}
}

func (m *manifest) refuse(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// Kinds that are used outside readers.
const (
	controlPlaneKind    = "KubeadmControlPlane"
	machineTemplateKind = "VCDMachineTemplate"
)

// readers maps the kinds that matter for a plan to the functions that read them.
var readers = map[string]func(*manifest, *unstructured.Unstructured) error{
	"VCDCluster":        (*manifest).addCluster,
	"VCDIdentity":       (*manifest).addIdentity,
	"Secret":            (*manifest).addSecret,
	machineTemplateKind: (*manifest).addTemplate,
	"VCDFailureDomain":  (*manifest).addDomain,
	"VCDDeploymentZone": (*manifest).addZone,
	"Cluster":           (*manifest).addCoreCluster,
	"ClusterClass":      (*manifest).addClass,
	controlPlaneKind: groupAt([]string{"spec", "machineTemplate", "spec", "infrastructureRef", "name"},
		[]string{"spec", "machineTemplate", "infrastructureRef", "name"}),
	"MachineDeployment": groupAt([]string{"spec", "template", "spec", "infrastructureRef", "name"}),
	"MachineSet":        groupAt([]string{"spec", "template", "spec", "infrastructureRef", "name"}),
	"MachinePool":       groupAt([]string{"spec", "template", "spec", "infrastructureRef", "name"}),
}

func (m *manifest) addCluster(object *unstructured.Unstructured) error {
	if version := object.GroupVersionKind().Version; version != infrav1.GroupVersion.Version {
		return fmt.Errorf("VCDCluster %s has version %s: convert it to %s", object.GetName(), version,
			infrav1.GroupVersion.Version)
	}
	if m.cluster != nil {
		return errors.New("the manifest contains several VCDClusters: check each separately")
	}
	m.cluster = &infrav1.VCDCluster{}
	return convert(object, m.cluster)
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

// addSecret reads a Secret. Its errors do not contain the data of the Secret.
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

func (m *manifest) addDomain(object *unstructured.Unstructured) error {
	m.domains[object.GetName()] = &infrav1.VCDFailureDomain{}
	return convert(object, m.domains[object.GetName()])
}

func (m *manifest) addZone(object *unstructured.Unstructured) error {
	zone := infrav1.VCDDeploymentZone{}
	err := convert(object, &zone)
	m.zones = append(m.zones, zone)
	return err
}

// addCoreCluster reads the Cluster of Cluster API, and its topology if it has one.
func (m *manifest) addCoreCluster(object *unstructured.Unstructured) error {
	m.clusterName = object.GetName()
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "topology"); !found {
		return nil
	}
	if m.topology != nil {
		return errors.New("the manifest contains several Clusters with a topology: check each separately")
	}
	m.topology = &clusterv1.Cluster{}
	return convertCore(object, m.topology)
}

func (m *manifest) addClass(object *unstructured.Unstructured) error {
	class := &clusterv1.ClusterClass{}
	m.classes[object.GetName()] = class
	return convertCore(object, class)
}

func convert(object *unstructured.Unstructured, into any) error {
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// convertCore reads an object of Cluster API.
func convertCore(object *unstructured.Unstructured, into any) error {
	if version := object.GroupVersionKind().Version; version != clusterv1.GroupVersion.Version {
		return fmt.Errorf("%s %s has version %s: convert it to %s", object.GetKind(), object.GetName(), version,
			clusterv1.GroupVersion.Version)
	}
	return convert(object, into)
}

// groupAt returns a function that reads a machineGroup. The name of its template is at one of the paths.
func groupAt(paths ...[]string) func(*manifest, *unstructured.Unstructured) error {
	return func(m *manifest, object *unstructured.Unstructured) error {
		m.addGroup(object, paths)
		return nil
	}
}

func (m *manifest) addGroup(object *unstructured.Unstructured, paths [][]string) {
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
			m.groups = append(m.groups, machineGroup{
				name:          object.GetKind() + " " + object.GetName(),
				template:      name,
				count:         count,
				failureDomain: domain,
				controlPlane:  object.GetKind() == controlPlaneKind,
				version:       version,
				apiServerArgs: apiServerArgs(object),
			})
			return
		}
	}
}
