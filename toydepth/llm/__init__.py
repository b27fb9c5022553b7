"""Language models: where their residual stream runs, and what each block does to each token (extra `llm`).

    load_model         a safetensors folder, a .gguf file or a hub name -> model and tokenizer
    read_documents     txt, jsonl, parquet, or FineWeb -> texts
    measure_model      model and texts -> statistics by layer, in constant memory

The only room that imports torch and transformers, and only inside functions: importing it loads neither.
"""

from toydepth.llm.measure import Measurement, measure_model
from toydepth.llm.models import LoadedModel, load_model
from toydepth.llm.texts import read_documents

__all__ = ["LoadedModel", "Measurement", "load_model", "measure_model", "read_documents"]
