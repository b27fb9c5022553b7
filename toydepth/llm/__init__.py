"""Language models: where their residual stream runs, and what each block does to each token (extra `llm`).

    load_model         a safetensors folder, a .gguf file or a hub name -> model and tokenizer
    read_documents     txt, jsonl, parquet, or FineWeb -> texts
    measure_model      model and texts -> statistics by layer, in constant memory
    survey_model       the same into a folder, from which it goes on after a stop

The only room that imports torch and transformers, and only inside functions: importing it loads neither.
"""

from toydepth.llm.measure import Measurement, measure_model
from toydepth.llm.models import LoadedModel, load_model
from toydepth.llm.survey import Survey, SurveySettings, survey_model
from toydepth.llm.texts import read_documents

__all__ = [
    "LoadedModel",
    "Measurement",
    "Survey",
    "SurveySettings",
    "load_model",
    "measure_model",
    "read_documents",
    "survey_model",
]
