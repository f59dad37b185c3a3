// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// bundleFlags are the flags of support-bundle.
type bundleFlags struct {
	file  string
	since time.Duration
}

func (p *program) bundleCommand() *cobra.Command {
	var f bundleFlags
	c := &cobra.Command{
		Use:   "support-bundle CLUSTER",
		Short: "Collect conditions, events and logs in one archive",
		Long: `Collects the data for a bug report in one archive: the Cluster API objects of a cluster with their conditions, the
events of its namespace, and the manager's log, including the wire log if it is enabled. Secrets are not read. Fields
with credentials, user names and passwords in URLs, and values that resemble a token or key are redacted. Review the
archive before you send it. CLUSTER is the name of a VCDCluster in --namespace. If some data cannot be read, the
archive contains the rest and the exit code is 1.`,
		Example: "  " + p.name + " support-bundle demo -n team-a -f demo.tar.gz",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return p.bundle(c.Context(), args[0], f) },
	}
	c.Flags().StringVarP(&f.file, "filename", "f", "", "Archive file; CLUSTER.tar.gz if not set.")
	c.Flags().DurationVar(&f.since, "since", time.Hour, "Maximum age of log lines.")
	return c
}

// collected are the kinds in a bundle. Free-form user data for nodes is excluded.
var collected = []schema.GroupVersionKind{
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineSet"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"},
	{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta4", Kind: "VCDCluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta4", Kind: "VCDMachine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta4", Kind: "VCDMachineTemplate"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta4", Kind: "VCDIdentity"},
	{Group: "", Version: "v1", Kind: "Event"},
}

// private lists the fields that are removed, by kind. Files and commands of nodes and values of variables may contain
// credentials under any name.
var private = map[string][][]string{
	"KubeadmControlPlane": {{"spec", "kubeadmConfigSpec"}},
	"Cluster": {
		{"spec", "topology", "variables"},
		{"spec", "topology", "controlPlane", "variables"},
		{"spec", "topology", "workers"},
	},
}

func (p *program) bundle(ctx context.Context, name string, f bundleFlags) error {
	c, _, err := p.readCluster(ctx, name)
	if err != nil {
		return err
	}
	management, _, err := p.connect(first(p.access.contexts))
	if err != nil {
		return err
	}
	files, missing := collect(ctx, management, c.Namespace)
	logs, err := p.managerLogs(ctx, management, f.since)
	if err != nil {
		missing = errors.Join(missing, err)
	}
	maps.Copy(files, logs)
	path := cmp.Or(f.file, name+".tar.gz")
	if err := writeArchive(path, name, files); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	fmt.Fprintln(p.out, path)
	if missing != nil {
		return fmt.Errorf("the archive is incomplete: %w", missing)
	}
	return nil
}

// collect returns the objects of all kinds in a namespace as files. The error lists the kinds that it could not read.
func collect(ctx context.Context, c client.Client, namespace string) (map[string][]byte, error) {
	files := map[string][]byte{}
	var missing []error
	for _, kind := range collected {
		content, err := list(ctx, c, kind, namespace)
		if err != nil {
			missing = append(missing, err)
			content = []byte("# " + err.Error() + "\n")
		}
		files[kind.Kind+".yaml"] = content
	}
	return files, errors.Join(missing...)
}

// list returns the objects of a kind in a namespace as YAML.
func list(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace string) ([]byte, error) {
	found := &unstructured.UnstructuredList{}
	kind.Kind += "List"
	found.SetGroupVersionKind(kind)
	err := c.List(ctx, found, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	for i := range found.Items {
		unstructured.RemoveNestedField(found.Items[i].Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(found.Items[i].Object, "metadata", "annotations",
			corev1.LastAppliedConfigAnnotation)
		for _, path := range private[found.Items[i].GetKind()] {
			unstructured.RemoveNestedField(found.Items[i].Object, path...)
		}
		redactFields(found.Items[i].Object)
	}
	return yaml.Marshal(found)
}

// maxLog is the maximum size of the log of a container, in bytes.
const maxLog = 64 << 20

// managerLogs returns the logs of the manager's pods, by the name of their file. A container that has restarted also has
// the log of its last run. The error lists the logs that are missing or cut.
func (p *program) managerLogs(ctx context.Context, c client.Client, since time.Duration) (map[string][]byte, error) {
	pods := &corev1.PodList{}
	err := c.List(ctx, pods, client.InNamespace(p.access.secretNamespace),
		client.MatchingLabels{"cluster.x-k8s.io/provider": "infrastructure-vcd"})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the manager: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, fmt.Errorf("namespace %s has no pod of the manager: set --provider-namespace", p.access.secretNamespace)
	}
	logs := map[string][]byte{}
	var missing []error
	read := func(pod *corev1.Pod, file string, previous bool) {
		log, err := p.podLog(ctx, client.ObjectKeyFromObject(pod), corev1.PodLogOptions{
			Previous:     previous,
			SinceSeconds: ptr.To(int64(since.Seconds())),
			LimitBytes:   ptr.To(int64(maxLog)),
		})
		switch {
		case err != nil:
			missing = append(missing, fmt.Errorf("reading %s: %w", file, err))
			return
		case len(log) >= maxLog:
			missing = append(missing, fmt.Errorf("%s lacks its newest lines: set a shorter --since", file))
		}
		logs[file] = log
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		read(pod, "log-"+pod.Name+".txt", false)
		if hasRestarted(pod) {
			read(pod, "log-"+pod.Name+"-previous.txt", true)
		}
	}
	return logs, errors.Join(missing...)
}

func hasRestarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
}

// writeArchive writes the redacted files to an archive that only its owner can read.
func writeArchive(path, folder string, files map[string][]byte) (err error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for name, content := range files {
		content = redactText(content)
		header := &tar.Header{Name: folder + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Now()}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	for _, w := range []io.Closer{archive, zip} {
		if err := w.Close(); err != nil {
			return err
		}
	}
	return os.WriteFile(path, packed.Bytes(), 0o600)
}
