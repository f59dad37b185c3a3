// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// An apiServer is an in-memory API server: controller-runtime's fake client, which real informers list and watch.
type apiServer struct {
	client.WithWatch

	scheme *runtime.Scheme
	mapper meta.RESTMapper
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme,
		clusterv1.AddToScheme,
		addonsv1.AddToScheme,
		ipamv1.AddToScheme,
		infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

func newAPIServer() *apiServer {
	scheme := newScheme()
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if gvk.Kind == "VCDClusterIdentity" || gvk.Kind == "Namespace" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	// The default tracker manages fields, which would take half of the time of a test.
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	return &apiServer{
		WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjectTracker(
			tracker).WithStatusSubresource(
			&infrav1.VCDCluster{}, &infrav1.VCDMachine{}, &infrav1.VCDIdentity{}, &infrav1.VCDClusterIdentity{},
			&infrav1.VCDMachineTemplate{}, &infrav1.VCDDeploymentZone{}, &infrav1.VCDFailureDomain{}, &ipamv1.IPAddressClaim{}, &clusterv1.Cluster{}, &clusterv1.Machine{},
		).Build(),
		scheme: scheme,
		mapper: mapper,
	}
}

// newMapper returns the REST mapper of the manager.
func (a *apiServer) newMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return a.mapper, nil
}

// newCache returns a cache whose informers list and watch the fake.
func (a *apiServer) newCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	opts.NewInformer = func(_ toolscache.ListerWatcher, obj runtime.Object, resync time.Duration,
		indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(a.listWatch(obj), obj, resync, indexers)
	}
	return cache.New(config, opts)
}

// listWatch returns a ListerWatcher for the kind of obj.
func (a *apiServer) listWatch(obj runtime.Object) toolscache.ListerWatcher {
	gvk, err := apiutil.GVKForObject(obj, a.scheme)
	if err != nil {
		panic(err)
	}
	_, partial := obj.(*metav1.PartialObjectMetadata)
	newList := func() client.ObjectList {
		if partial {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return list
		}
		list, err := a.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			panic(err)
		}
		return list.(client.ObjectList)
	}
	watchAll := func(ctx context.Context) (watch.Interface, error) {
		w, err := a.Watch(ctx, newList())
		if err != nil || !partial {
			return w, err
		}
		return watch.Filter(w, func(in watch.Event) (watch.Event, bool) {
			in.Object = metadataOf(in.Object, gvk)
			return in, true
		}), nil
	}
	// The fake keeps no history, so a watch would miss changes after the preceding list. The watch starts before the
	// list.
	var started watch.Interface
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			var err error
			if started, err = watchAll(ctx); err != nil {
				return nil, err
			}
			list := newList()
			return list, a.List(ctx, list)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			if w := started; w != nil {
				started = nil
				return w, nil
			}
			return watchAll(ctx)
		},
	}, noWatchList{})
}

// noWatchList is a client without support for watch lists.
type noWatchList struct{}

// IsWatchListSemanticsUnSupported implements the optional interface that client-go checks.
func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// metadataOf returns the metadata of an object, as a metadata watch delivers it.
func metadataOf(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj
	}
	out := meta.AsPartialObjectMetadata(accessor)
	out.SetGroupVersionKind(gvk)
	return out
}

// newClient returns the client of the manager. It reads Secrets and ConfigMaps live and other kinds from the cache, and
// writes to the fake.
func (a *apiServer) newClient(_ *rest.Config, opts client.Options) (client.Client, error) {
	return &managerClient{Client: a.WithWatch, cache: opts.Cache.Reader}, nil
}

type managerClient struct {
	client.Client

	cache client.Reader
}

func (c *managerClient) reader(obj runtime.Object) client.Reader {
	switch obj.(type) {
	case *corev1.Secret, *corev1.ConfigMap, *corev1.SecretList, *corev1.ConfigMapList:
		return c.Client
	}
	return c.cache
}

// Get implements client.Reader.
func (c *managerClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.reader(obj).Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *managerClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.reader(list).List(ctx, list, opts...)
}
