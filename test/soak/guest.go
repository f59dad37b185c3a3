// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// kubeletTimeout bounds a request to the API server of a cluster.
const kubeletTimeout = 10 * time.Second

// startCCM lets the cloud controller manager of the cluster live, until the cluster is gone.
func (t *tenant) startCCM(ctx context.Context) error {
	c, err := t.newGuestCCM()
	if err != nil {
		return err
	}
	t.world.mu.Lock()
	defer t.world.mu.Unlock()
	t.world.ccms[t.name] = c
	t.world.living.Go(func() {
		err := t.live(ctx, c)
		t.world.mu.Lock()
		defer t.world.mu.Unlock()
		delete(t.world.ccms, t.name)
		t.world.note(t.birth, err)
	})
	return nil
}

// live runs the cloud controller manager of the cluster as its kubelets do, with the files that the manager rendered,
// until the cluster is gone.
func (t *tenant) live(ctx context.Context, c *ccm) error {
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.end()
		case <-ticker.C:
		}
		cluster := &infrav1.VCDCluster{}
		err := t.world.client.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: t.name}, cluster)
		if apierrors.IsNotFound(err) {
			return t.end(ctx, c)
		}
		if err != nil {
			t.world.logf("%s: getting its VCDCluster: %s", t.name, err)
			continue
		}
		c.env = []string{"CLUSTER_ID=" + cluster.Spec.InfraID}
		if err := t.sync(ctx, c, !cluster.DeletionTimestamp.IsZero()); err != nil {
			t.world.logf("%s: the work of its kubelets: %s", t.name, err)
		}
	}
}

// sync does the work of the kubelets once. Without nodes, the cloud controller manager has no place to run. While the API
// server of the cluster does not respond, nothing changes.
func (t *tenant) sync(ctx context.Context, c *ccm, ending bool) error {
	nodes, err := t.guestNodes(ctx)
	if ending && (err != nil || len(nodes) == 0) {
		return c.kill()
	}
	if err != nil || len(nodes) == 0 {
		return nil // the next time
	}
	if err := c.mirrorNodes(ctx, nodes); err != nil {
		return err
	}
	files, err := t.rendered(ctx)
	if err != nil || files == nil {
		return err
	}
	if err := c.write(files); err != nil {
		return err
	}
	if !c.paused.TryLock() {
		return nil // It was killed.
	}
	defer c.paused.Unlock()
	return c.start()
}

// guestNodes returns the nodes of the cluster.
func (t *tenant) guestNodes(ctx context.Context) ([]corev1.Node, error) {
	kubeconfig, err := t.world.nodes.AdminKubeconfig(t.name)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", t.name, err)
	}
	config.Timeout = kubeletTimeout
	guest, err := client.New(config, client.Options{Scheme: t.world.client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %s: %w", t.name, err)
	}
	list := &corev1.NodeList{}
	if err := guest.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", t.name, err)
	}
	return list.Items, nil
}

// end ends the cloud controller manager of a cluster that is gone. Its Nodes and Services were in the cluster.
func (t *tenant) end(ctx context.Context, c *ccm) error {
	if err := c.end(); err != nil {
		return err
	}
	if err := c.mirrorNodes(ctx, nil); err != nil {
		return err
	}
	return t.world.dropServices(ctx, t.name)
}

// newGuestCCM prepares the cloud controller manager of the cluster.
func (t *tenant) newGuestCCM() (*ccm, error) {
	return t.world.newCCM(t.name,
		"--cloud-provider=vmware-cloud-director",
		"--cloud-config="+filepath.Join(t.ccmDir(), addons.ConfigKey),
		"--credentials="+filepath.Join(t.ccmDir(), credentialsDir),
	)
}

func (t *tenant) ccmDir() string { return filepath.Join(t.world.dir, "ccm", t.name) }

// credentialsDir is the folder with the credentials of a cloud controller manager.
const credentialsDir = "basic-auth"

// rendered returns the files that the manager rendered for the cloud controller manager, or nothing if it did not yet.
func (t *tenant) rendered(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: t.namespace, Name: t.name + "-cloud-provider"}
	if err := t.world.client.Get(ctx, key, secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if secret.Type != addonsv1.ClusterResourceSetSecretType {
		return nil, fmt.Errorf("secret %s has type %s", key, secret.Type)
	}
	objects, err := utilyaml.ToUnstructured(secret.Data["manifests.yaml"])
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of the CCM of %s: %w", t.name, err)
	}
	files := map[string][]byte{}
	for _, object := range objects {
		switch {
		case object.GetKind() == "ConfigMap" && object.GetName() == addons.ConfigMapName:
			var config corev1.ConfigMap
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
				return nil, fmt.Errorf("reading a ConfigMap: %w", err)
			}
			files[addons.ConfigKey] = []byte(config.Data[addons.ConfigKey])
		case object.GetKind() == "Secret":
			var credentials corev1.Secret
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &credentials); err != nil {
				return nil, fmt.Errorf("reading a Secret: %w", err)
			}
			for name, content := range credentials.Data {
				files[filepath.Join(credentialsDir, name)] = content
			}
			for name, content := range credentials.StringData {
				files[filepath.Join(credentialsDir, name)] = []byte(content)
			}
		}
	}
	return files, nil
}
